/* Conformance: messages longer than the receive buffer. Whatever way the message goes, the status is exact, no byte is
 * written outside, and the next message is whole. */
#include "support/suite.h"

enum path { POSTED, UNEXPECTED, MATCHED_PROBE, BLOCKING, N_PATHS };

static void check_cut(const strata_status_t *st, int rc, const char *b, size_t room, size_t len)
{
    CHECK_RC(rc, STRATA_ERR_TRUNCATE);
    CHECK_EQ(st->error, STRATA_ERR_TRUNCATE);
    CHECK_EQ(st->length, room);
    CHECK_EQ(st->sent, len);
    CHECK_EQ(st->source, 0);
    CHECK_EQ(st->tag, 6);
    CHECK_MSG(pattern_check(b, room, 9) < 0, "%zu of %zu bytes: wrong data", room, len);
}

static void receive_cut(struct tw_rank *r, enum path path, size_t len, size_t room)
{
    strata_status_t st;
    strata_request_t *q = NULL;
    strata_message_t *m = NULL;
    char *b = suite_buffer(room);
    int rc = STRATA_OK;
    switch (path) {
    case POSTED:
        CHECK_OK(strata_irecv(r->comm, b, room, 0, 6, &q));
        suite_signal(r->comm, 0, 1);
        rc = strata_wait(&q, &st);
        break;
    case UNEXPECTED:
        suite_signal(r->comm, 0, 1);
        suite_arrived(r->comm, 0, 6);
        CHECK_OK(strata_irecv(r->comm, b, room, 0, 6, &q));
        rc = strata_wait(&q, &st);
        break;
    case MATCHED_PROBE:
        suite_signal(r->comm, 0, 1);
        CHECK_OK(strata_mprobe(r->comm, 0, 6, &m, &st));
        CHECK_EQ(st.length, len);
        rc = strata_mrecv(&m, b, room, &st);
        break;
    default:
        suite_signal(r->comm, 0, 1);
        rc = strata_recv(r->comm, b, room, 0, STRATA_ANY_TAG, &st);
        break;
    }
    check_cut(&st, rc, b, room, len);
    suite_buffer_free(b, room);
}

static void paths(struct tw_rank *r)
{
    size_t size[80], n = suite_sizes(r->s, 300000, size, 80);
    for (size_t i = 0; i < n; i++) {
        size_t room[] = {0, size[i] / 2, size[i] - 1};
        if (size[i] == 0)
            continue;
        for (int path = 0; path < N_PATHS; path++)
            for (int k = 0; k < 3; k++) {
                if (!suite_every(i + (size_t)(path + k), 3))
                    continue;
                if (r->rank == 1) {
                    receive_cut(r, (enum path)path, size[i], room[k]);
                    suite_recv(r->comm, size[i], 0, 7, 10);
                    continue;
                }
                suite_await(r->comm, 1, 1);
                suite_send(r->comm, size[i], 1, 6, 9);
                suite_send(r->comm, size[i], 1, 7, 10); /* whole */
            }
    }
}

/* A synchronous send, a buffered send and a send to oneself that are cut complete at the sender as usual. */
static void modes_and_self(struct tw_rank *r)
{
    size_t len[] = {100, suite_long(r->s)};
    for (int i = 0; i < 2; i++) {
        strata_status_t st;
        strata_request_t *q = NULL;
        char *b = suite_buffer(len[i]), *small = suite_buffer(10);
        pattern_fill(b, len[i], 9);
        CHECK_OK(strata_irecv(r->comm, small, 10, r->rank, 6, &q));
        CHECK_OK(strata_send(r->comm, b, len[i], r->rank, 6));
        CHECK_RC(strata_wait(&q, &st), STRATA_ERR_TRUNCATE);
        CHECK_EQ(st.length, 10);
        CHECK_EQ(st.sent, len[i]);
        CHECK_OK(strata_isend_mode(r->comm, b, len[i], r->rank, 6, STRATA_SYNCHRONOUS, &q));
        CHECK_RC(strata_recv(r->comm, small, 10, r->rank, 6, &st), STRATA_ERR_TRUNCATE);
        CHECK_EQ(st.sent, len[i]);
        CHECK_OK(strata_wait(&q, NULL));
        if (r->rank == 0) {
            CHECK_OK(strata_ssend(r->comm, b, len[i], 1, 6));
        } else {
            CHECK_RC(strata_recv(r->comm, small, 10, 0, 6, &st), STRATA_ERR_TRUNCATE);
            check_cut(&st, STRATA_ERR_TRUNCATE, small, 10, len[i]);
        }
        suite_buffer_free(b, len[i]);
        suite_buffer_free(small, 10);
    }
}

/* waitall reports each status, and itself the first failure. */
static void in_waitall(struct tw_rank *r)
{
    size_t len = suite_long(r->s);
    if (r->rank == 0) {
        suite_await(r->comm, 1, 1);
        suite_send(r->comm, 8, 1, 2, 1);
        suite_send(r->comm, len, 1, 3, 9);
        suite_send(r->comm, len, 1, 4, 3);
        return;
    }
    strata_request_t *q[3];
    strata_status_t st[3];
    char *a = suite_buffer(8), *b = suite_buffer(len / 3), *c = suite_buffer(len);
    CHECK_OK(strata_irecv(r->comm, a, 8, 0, 2, &q[0]));
    CHECK_OK(strata_irecv(r->comm, b, len / 3, 0, 3, &q[1]));
    CHECK_OK(strata_irecv(r->comm, c, len, 0, 4, &q[2]));
    suite_signal(r->comm, 0, 1);
    CHECK_RC(strata_waitall(3, q, st), STRATA_ERR_TRUNCATE);
    CHECK(!q[0] && !q[1] && !q[2]);
    CHECK_EQ(st[0].error, STRATA_OK);
    CHECK_EQ(st[1].error, STRATA_ERR_TRUNCATE);
    CHECK_EQ(st[1].length, len / 3);
    CHECK_EQ(st[1].sent, len);
    CHECK_EQ(st[2].error, STRATA_OK);
    CHECK_EQ(pattern_check(b, len / 3, 9), -1);
    CHECK_EQ(pattern_check(c, len, 3), -1);
    suite_buffer_free(a, 8);
    suite_buffer_free(b, len / 3);
    suite_buffer_free(c, len);
}

static const struct suite_case cases[] = {
    {"paths", 2, 0, paths},
    {"modes_and_self", 2, 0, modes_and_self},
    {"in_waitall", 2, 0, in_waitall},
};
SUITE_GROUP(suite_truncate, cases);
