/* Conformance: standard, synchronous, buffered and ready sends. */
#include "support/suite.h"

#define MAX_SIZES 80

static int send_mode(strata_comm_t *c, int mode, const void *b, size_t len, int dst, int tag)
{
    static int (*const call[])(strata_comm_t *, const void *, size_t, int, int) = {strata_send, strata_bsend,
                                                                                   strata_ssend, strata_rsend};
    return call[mode](c, b, len, dst, tag);
}

/* Blocking and nonblocking sends of each mode and size. */
static void all_modes(struct tw_rank *r)
{
    size_t size[MAX_SIZES], n = suite_sizes(r->s, 300000, size, MAX_SIZES);
    size_t room = 700000;
    void *area = malloc(room);
    CHECK(area);
    CHECK_OK(strata_buffer_attach(r->s, area, room));
    for (size_t i = 0; i < n; i++)
        for (int mode = 0; mode < 4; mode++) {
            char *b = suite_buffer(size[i]), *b2 = suite_buffer(size[i]);
            strata_request_t *q[2];
            if (!suite_every(i + (size_t)mode, 2)) {
                /* its turn is with the next size */
            } else if (r->rank == 0) {
                pattern_fill(b, size[i], i);
                suite_await(r->comm, 1, 99); /* the receives are posted */
                CHECK_OK(send_mode(r->comm, mode, b, size[i], 1, mode));
                CHECK_OK(strata_isend_mode(r->comm, b, size[i], 1, mode, (strata_mode_t)mode, &q[0]));
                CHECK_OK(strata_wait(&q[0], NULL));
            } else {
                CHECK_OK(strata_irecv(r->comm, b, size[i], 0, mode, &q[0]));
                CHECK_OK(strata_irecv(r->comm, b2, size[i], 0, mode, &q[1]));
                suite_signal(r->comm, 0, 99);
                CHECK_OK(strata_waitall(2, q, NULL));
                CHECK_EQ(pattern_check(b, size[i], i), -1);
                CHECK_EQ(pattern_check(b2, size[i], i), -1);
            }
            suite_buffer_free(b, size[i]);
            suite_buffer_free(b2, size[i]);
        }
    void *back = NULL;
    size_t back_size = 0;
    CHECK_OK(strata_buffer_detach(r->s, &back, &back_size));
    CHECK(back == area);
    CHECK_EQ(back_size, room);
    free(area);
}

/* A synchronous send is not complete before its receive has matched. */
static void synchronous_waits(struct tw_rank *r)
{
    size_t len[] = {0, 8, suite_long(r->s)};
    for (int i = 0; i < 3; i++) {
        strata_request_t *q = NULL;
        int done = 0;
        if (r->rank == 0) {
            char *b = suite_buffer(len[i]);
            pattern_fill(b, len[i], 3);
            CHECK_OK(strata_isend_mode(r->comm, b, len[i], 1, 1, STRATA_SYNCHRONOUS, &q));
            suite_signal(r->comm, 1, 2);
            suite_await(r->comm, 1, 3);
            suite_spin(r->s, 100);
            CHECK_OK(strata_test(&q, &done, NULL));
            CHECK_MSG(!done, "a synchronous send of %zu bytes completed without a receive", len[i]);
            suite_signal(r->comm, 1, 4);
            CHECK_OK(strata_wait(&q, NULL));
            suite_buffer_free(b, len[i]);
        } else {
            suite_await(r->comm, 0, 2);
            suite_arrived(r->comm, 0, 1); /* seen by a probe is not received */
            suite_signal(r->comm, 0, 3);
            suite_await(r->comm, 0, 4);
            suite_recv(r->comm, len[i], 0, 1, 3);
        }
    }
}

/* Buffered sends complete though nobody receives; what does not fit is refused and harms nothing. */
static void buffer_exhaustion(struct tw_rank *r)
{
    if (r->rank == 0) {
        suite_await(r->comm, 1, 5);
        suite_signal(r->comm, 1, 5);
        /* A stream would leave the buffer. */
        size_t len = suite_announced(r->s, 1), room = 3 * (len + STRATA_BSEND_OVERHEAD);
        char *b = suite_buffer(len), *area = malloc(room);
        void *back = NULL;
        size_t back_size = 0;
        int sent = 0, rc;
        CHECK(area);
        CHECK_RC(strata_bsend(r->comm, b, len, 1, 1), STRATA_ERR_BUFFER); /* nothing is attached */
        CHECK_OK(strata_buffer_attach(r->s, area, room));
        CHECK_RC(strata_buffer_attach(r->s, area, room), STRATA_ERR_STATE);
        do {
            pattern_fill(b, len, (uint64_t)sent);
            rc = strata_bsend(r->comm, b, len, 1, 1);
        } while (rc == STRATA_OK && ++sent < 100);
        CHECK_EQ(rc, STRATA_ERR_BUFFER);
        CHECK_MSG(sent == 3, "%d messages of %zu bytes went into a buffer for 3", sent, len);
        CHECK_RC(strata_bsend(r->comm, b, len, 1, 1), STRATA_ERR_BUFFER);
        memset(b, 0, len); /* ours again */
        CHECK_OK(strata_send(r->comm, (size_t[2]){(size_t)sent, len}, 2 * sizeof(size_t), 1, 2));
        CHECK_OK(strata_buffer_detach(r->s, &back, &back_size)); /* waits until they have left */
        CHECK(back == area);
        CHECK_OK(strata_buffer_attach(r->s, area, room)); /* and the room is whole again */
        for (int i = 0; i < 3; i++) {
            pattern_fill(b, len, (uint64_t)(10 + i));
            CHECK_OK(strata_bsend(r->comm, b, len, 1, 3));
        }
        CHECK_OK(strata_buffer_detach(r->s, &back, &back_size));
        free(area);
        suite_buffer_free(b, len);
    } else {
        size_t sent_of[2] = {0};
        suite_signal(r->comm, 0, 5);
        suite_await(r->comm, 0, 5);
        CHECK_OK(strata_recv(r->comm, sent_of, sizeof sent_of, 0, 2, NULL));
        for (uint64_t i = 0; i < sent_of[0]; i++)
            suite_recv(r->comm, sent_of[1], 0, 1, i);
        for (int i = 0; i < 3; i++)
            suite_recv(r->comm, sent_of[1], 0, 3, (uint64_t)(10 + i));
    }
}

/* Room in the buffer is used again as messages leave, in any order of sizes. */
static void buffer_reuse(struct tw_rank *r)
{
    int rounds = suite_scale(2000);
    size_t room = 64 * 1024;
    struct rnd rnd = {42};
    char *area = malloc(room), *b = suite_buffer(20000);
    void *back;
    size_t back_size;
    CHECK(area);
    if (r->rank == 0)
        CHECK_OK(strata_buffer_attach(r->s, area, room));
    for (int i = 0; i < rounds; i++) {
        size_t len = rnd_below(&rnd, 20000);
        if (r->rank == 0) {
            int rc;
            pattern_fill(b, len, (uint64_t)i);
            while ((rc = strata_bsend(r->comm, b, len, 1, 1)) == STRATA_ERR_BUFFER)
                suite_spin(r->s, 1);
            CHECK_OK(rc);
        } else {
            suite_recv(r->comm, len, 0, 1, (uint64_t)i);
        }
    }
    if (r->rank == 0)
        CHECK_OK(strata_buffer_detach(r->s, &back, &back_size));
    suite_buffer_free(b, 20000);
    free(area);
}

static const struct suite_case cases[] = {
    {"all_modes", 2, 0, all_modes},
    {"synchronous_waits", 2, 0, synchronous_waits},
    {"buffer_exhaustion", 2, 0, buffer_exhaustion},
    {"buffer_reuse", 2, 0, buffer_reuse},
};
SUITE_GROUP(suite_modes, cases);
