/* Conformance: blocking messages of every size, to others and to oneself; bad arguments; reports. */
#include "support/suite.h"

#define MAX_SIZES 80

/* Each size four times: receiver first, message first, both ways. */
static void sizes(struct tw_rank *r)
{
    size_t size[MAX_SIZES], n = suite_sizes(r->s, 1u << 20, size, MAX_SIZES);
    int peer = 1 - r->rank;
    for (size_t i = 0; i < n; i++) {
        uint64_t seed = size[i] * 31 + 5;
        for (int turn = 0; turn < 2; turn++) {
            if (!suite_every(i + (size_t)turn, 2)) {
                /* its turn is with the next size */
            } else if (r->rank == turn) {
                suite_send(r->comm, size[i], peer, 1, seed);
                suite_await(r->comm, peer, 9);
                suite_send(r->comm, size[i], peer, 2, seed + 1);
            } else {
                suite_recv(r->comm, size[i], peer, 1, seed);
                suite_signal(r->comm, peer, 9);
                suite_arrived(r->comm, peer, 2);
                suite_recv(r->comm, size[i], peer, 2, seed + 1);
            }
        }
    }
}

/* Room in the receive buffer beyond the message stays as it was. */
static void short_message(struct tw_rank *r)
{
    size_t size[MAX_SIZES], n = suite_sizes(r->s, 300000, size, MAX_SIZES);
    for (size_t i = 0; i < n; i++) {
        if (r->rank == 0) {
            suite_send(r->comm, size[i], 1, 3, i);
            continue;
        }
        strata_status_t st;
        size_t room = size[i] + 4096;
        unsigned char *b = suite_buffer(room);
        CHECK_OK(strata_recv(r->comm, b, room, 0, 3, &st));
        CHECK_EQ(st.length, size[i]);
        CHECK_EQ(pattern_check(b, size[i], i), -1);
        for (size_t k = size[i]; k < room; k++)
            CHECK_MSG(b[k] == 0x5a, "byte %zu behind a message of %zu was written", k, size[i]);
        suite_buffer_free(b, room);
    }
}

static void self_messages(struct tw_rank *r)
{
    size_t size[MAX_SIZES], n = suite_sizes(r->s, 1u << 20, size, MAX_SIZES);
    for (size_t i = 0; i < n; i++) {
        strata_request_t *req = NULL;
        strata_status_t st;
        char *in = suite_buffer(size[i]), *out = suite_buffer(size[i]);
        pattern_fill(out, size[i], i);
        CHECK_OK(strata_irecv(r->comm, in, size[i], r->rank, 4, &req)); /* receive first */
        CHECK_OK(strata_send(r->comm, out, size[i], r->rank, 4));
        CHECK_OK(strata_wait(&req, &st));
        CHECK_EQ(st.source, r->rank);
        CHECK_EQ(pattern_check(in, size[i], i), -1);
        memset(in, 0, size[i]);
        CHECK_OK(strata_isend(r->comm, out, size[i], r->rank, 5, &req)); /* message first */
        CHECK_OK(strata_recv(r->comm, in, size[i], STRATA_ANY_SOURCE, STRATA_ANY_TAG, &st));
        CHECK_OK(strata_wait(&req, NULL));
        CHECK_EQ(st.tag, 5);
        CHECK_EQ(pattern_check(in, size[i], i), -1);
        CHECK_OK(strata_sendrecv(r->comm, out, size[i], r->rank, 6, in, size[i], r->rank, 6, &st));
        suite_buffer_free(in, size[i]);
        suite_buffer_free(out, size[i]);
    }
}

static void sendrecv_ring(struct tw_rank *r)
{
    int n = 3, right = (r->rank + 1) % n, left = (r->rank + n - 1) % n;
    size_t size[MAX_SIZES], count = suite_sizes(r->s, 1u << 20, size, MAX_SIZES);
    for (size_t i = 0; i < count; i++) {
        strata_status_t st;
        char *in = suite_buffer(size[i]), *out = suite_buffer(size[i]);
        pattern_fill(out, size[i], (uint64_t)r->rank);
        CHECK_OK(strata_sendrecv(r->comm, out, size[i], right, 7, in, size[i], left, 7, &st));
        CHECK_EQ(st.source, left);
        CHECK_EQ(st.length, size[i]);
        CHECK_EQ(pattern_check(in, size[i], (uint64_t)left), -1);
        suite_buffer_free(in, size[i]);
        suite_buffer_free(out, size[i]);
    }
}

/* Both sides send at once, long messages: neither may wait for the other's receive to finish first. */
static void crossing(struct tw_rank *r)
{
    size_t len[] = {suite_long(r->s), 3 * suite_long(r->s) + 11, test_sanitized() ? 1u << 20 : 5u << 20};
    int peer = 1 - r->rank;
    for (int i = 0; i < 3; i++) {
        strata_request_t *q[2];
        char *in = suite_buffer(len[i]), *out = suite_buffer(len[i]);
        pattern_fill(out, len[i], (uint64_t)(r->rank + i));
        CHECK_OK(strata_isend(r->comm, out, len[i], peer, 8, &q[0]));
        CHECK_OK(strata_irecv(r->comm, in, len[i], peer, 8, &q[1]));
        CHECK_OK(strata_waitall(2, q, NULL));
        CHECK_EQ(pattern_check(in, len[i], (uint64_t)(peer + i)), -1);
        suite_buffer_free(in, len[i]);
        suite_buffer_free(out, len[i]);
    }
}

static void proc_null(struct tw_rank *r)
{
    strata_request_t *q = NULL;
    strata_status_t st;
    char c = 'x';
    int found = 0;
    CHECK_OK(strata_send(r->comm, &c, 1, STRATA_PROC_NULL, 1));
    CHECK_OK(strata_recv(r->comm, &c, 1, STRATA_PROC_NULL, 1, &st));
    CHECK_EQ(st.source, STRATA_PROC_NULL);
    CHECK_EQ(st.length, 0);
    CHECK_OK(strata_isend(r->comm, &c, 1, STRATA_PROC_NULL, 1, &q));
    CHECK_OK(strata_wait(&q, &st));
    CHECK_OK(strata_irecv(r->comm, &c, 1, STRATA_PROC_NULL, 1, &q));
    CHECK_OK(strata_wait(&q, &st));
    CHECK_EQ(st.source, STRATA_PROC_NULL);
    CHECK(q == NULL && c == 'x');
    CHECK_OK(strata_iprobe(r->comm, STRATA_PROC_NULL, 1, &found, &st));
    CHECK_EQ(found, 1);
    CHECK_OK(strata_sendrecv(r->comm, &c, 1, STRATA_PROC_NULL, 1, &c, 1, STRATA_PROC_NULL, 1, &st));
}

static void bad_arguments(struct tw_rank *r)
{
    strata_request_t *q = NULL;
    char c = 0;
    int n = strata_size(r->s);
    CHECK_RC(strata_send(r->comm, &c, 1, n, 1), STRATA_ERR_RANK);
    CHECK_RC(strata_send(r->comm, &c, 1, -7, 1), STRATA_ERR_RANK);
    CHECK_RC(strata_send(r->comm, &c, 1, STRATA_ANY_SOURCE, 1), STRATA_ERR_RANK);
    CHECK_RC(strata_recv(r->comm, &c, 1, n, 1, NULL), STRATA_ERR_RANK);
    CHECK_RC(strata_send(r->comm, &c, 1, 0, -1), STRATA_ERR_TAG);
    CHECK_RC(strata_isend(r->comm, &c, 1, n + 5, 1, &q), STRATA_ERR_RANK);
    CHECK_RC(strata_send(r->comm, NULL, 1, 0, 1), STRATA_ERR_ARG);
    CHECK(q == NULL);
    CHECK_OK(strata_wait(&q, NULL)); /* a null request is complete */
}

static void count_line(void *arg, const strata_mem_line_t *line)
{
    CHECK(line->component && line->category);
    *(size_t *)arg += line->bytes;
}

static void reports(struct tw_rank *r)
{
    size_t bytes = 0;
    char *json = NULL;
    if (r->rank == 0)
        suite_send(r->comm, 10, 1, 1, 1);
    else
        suite_recv(r->comm, 10, 0, 1, 1);
    CHECK_OK(strata_mem_report(r->s, count_line, &bytes));
    CHECK(bytes > 0 && bytes < (1u << 30));
    CHECK_OK(strata_peer_report(r->s, 1 - r->rank, &json));
    CHECK(json && json[0] == '{' && strstr(json, "\"paths\""));
    free(json);
    CHECK_RC(strata_peer_report(r->s, strata_size(r->s), &json), STRATA_ERR_RANK);
}

static const struct suite_case cases[] = {
    {"sizes", 2, 0, sizes},
    {"short_message", 2, 0, short_message},
    {"self_messages", 1, 0, self_messages},
    {"sendrecv_ring", 3, 0, sendrecv_ring},
    {"crossing", 2, 0, crossing},
    {"proc_null", 1, 0, proc_null},
    {"bad_arguments", 1, 0, bad_arguments},
    {"reports", 2, 0, reports},
};
SUITE_GROUP(suite_basic, cases);
