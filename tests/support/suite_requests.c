/* Conformance: persistent requests, wait and test in all their forms, requests given up. */
#include "support/suite.h"

static void persistent(struct tw_rank *r)
{
    size_t len[] = {0, 8, 5000, suite_long(r->s)};
    for (int i = 0; i < 4; i++) {
        strata_request_t *q[3] = {NULL};
        char *b[3];
        for (int k = 0; k < 3; k++) {
            b[k] = suite_buffer(len[i]);
            strata_data_t d = {.kind = STRATA_CONTIGUOUS, .length = len[i], .u.buffer = b[k]};
            if (r->rank == 0)
                CHECK_OK(strata_send_init(r->comm, &d, 1, k, k == 2 ? STRATA_SYNCHRONOUS : STRATA_STANDARD, &q[k]));
            else
                CHECK_OK(strata_recv_init(r->comm, &d, 0, k == 1 ? STRATA_ANY_TAG : k, &q[k]));
        }
        strata_status_t st[3];
        CHECK_OK(strata_wait(&q[0], &st[0])); /* inactive: complete, and stays */
        CHECK(q[0]);
        for (int round = 0; round < 20; round++) {
            for (int k = 0; k < 3 && r->rank == 0; k++)
                pattern_fill(b[k], len[i], (uint64_t)(round * 3 + k));
            if (r->rank == 0) {
                suite_await(r->comm, 1, 50); /* posted in order, so that the wildcard meets its own */
                CHECK_OK(strata_startall(3, q));
            } else {
                for (int k = 0; k < 3; k++)
                    CHECK_OK(strata_start(q[k]));
                suite_signal(r->comm, 0, 50);
            }
            CHECK_RC(strata_start(q[1]), STRATA_ERR_STATE); /* active until waited for */
            CHECK_OK(strata_waitall(3, q, st));
            CHECK(q[0] && q[1] && q[2]);
            for (int k = 0; k < 3 && r->rank == 1; k++) {
                CHECK_EQ(st[k].tag, k);
                CHECK_EQ(st[k].length, len[i]);
                CHECK_EQ(pattern_check(b[k], len[i], (uint64_t)(round * 3 + k)), -1);
            }
        }
        if (r->rank == 1) { /* started, then cancelled */
            CHECK_OK(strata_start(q[0]));
            CHECK_OK(strata_cancel(q[0]));
            CHECK_RC(strata_wait(&q[0], NULL), STRATA_ERR_CANCELLED);
            CHECK(q[0]);
        }
        for (int k = 0; k < 3; k++) {
            CHECK_OK(strata_request_free(&q[k]));
            CHECK(q[k] == NULL);
            suite_buffer_free(b[k], len[i]);
        }
    }
}

static void any_and_all(struct tw_rank *r)
{
    enum { N = 10 };
    size_t len = suite_long(r->s);
    if (r->rank == 0) {
        for (int i = N - 1; i >= 0; i--) {
            suite_await(r->comm, 1, 90);
            suite_send(r->comm, i % 3 ? 8 : len, 1, i, (uint64_t)i);
        }
        return;
    }
    strata_request_t *q[N + 1];
    strata_status_t st;
    char *b[N];
    int index = -1, done = 1;
    for (int i = 0; i < N; i++) {
        b[i] = suite_buffer(len);
        CHECK_OK(strata_irecv(r->comm, b[i], len, 0, i, &q[i]));
    }
    q[N] = NULL;
    CHECK_OK(strata_testall(N + 1, q, &done, NULL));
    CHECK(!done);
    CHECK_OK(strata_testany(N + 1, q, &index, &done, &st));
    CHECK(!done);
    for (int i = N - 1; i >= 0; i--) {
        suite_signal(r->comm, 0, 90);
        if (i > 2) {
            CHECK_OK(strata_waitany(N + 1, q, &index, &st));
        } else {
            do
                CHECK_OK(strata_testany(N + 1, q, &index, &done, &st));
            while (!done);
        }
        CHECK_EQ(index, i);
        CHECK_EQ(st.tag, i);
        CHECK(q[i] == NULL);
        CHECK_EQ(pattern_check(b[i], i % 3 ? 8 : len, (uint64_t)i), -1);
        suite_buffer_free(b[i], len);
    }
    CHECK_OK(strata_waitany(N + 1, q, &index, &st));
    CHECK_EQ(index, -1);
    CHECK_OK(strata_testany(N + 1, q, &index, &done, &st));
    CHECK(done && index == -1);
    CHECK_OK(strata_testall(N + 1, q, &done, NULL));
    CHECK(done);
}

/* waitany and testany over persistent requests: each is reported once per start and stays, inactive; those that were
 * not started are passed over. */
static void any_persistent(struct tw_rank *r)
{
    enum { N = 4 };
    size_t len[N] = {0, 8, 3000, suite_long(r->s)};
    strata_request_t *q[N] = {NULL};
    strata_status_t st;
    char *b[N];
    int index = 5, done = 0;
    for (int k = 0; k < N; k++) {
        b[k] = suite_buffer(len[k]);
        strata_data_t d = {.kind = STRATA_CONTIGUOUS, .length = len[k], .u.buffer = b[k]};
        pattern_fill(b[k], len[k], (uint64_t)k);
        CHECK_OK(r->rank == 0 ? strata_send_init(r->comm, &d, 1, k, STRATA_STANDARD, &q[k])
                              : strata_recv_init(r->comm, &d, 0, k, &q[k]));
    }
    for (int round = 0; round < 10; round++) {
        CHECK_OK(strata_waitany(N, q, &index, &st)); /* none is active */
        CHECK_EQ(index, -1);
        int left_out = round % N;
        unsigned seen = 1u << left_out;
        for (int k = N - 1; k >= 0; k--)
            if (k != left_out)
                CHECK_OK(strata_start(q[k]));
        for (int turn = 0; turn < N - 1; turn++) {
            if (turn % 2) {
                CHECK_OK(strata_waitany(N, q, &index, &st));
            } else {
                do
                    CHECK_OK(strata_testany(N, q, &index, &done, &st));
                while (!done);
            }
            CHECK(index >= 0 && index < N && !(seen & 1u << index));
            seen |= 1u << index;
            CHECK(r->rank == 0 || (st.tag == index && st.length == len[index]));
            CHECK(q[index] != NULL);
        }
        CHECK_OK(strata_testany(N, q, &index, &done, &st));
        CHECK(done && index == -1);
    }
    for (int k = 0; k < N; k++) {
        CHECK_EQ(pattern_check(b[k], len[k], (uint64_t)k), -1);
        CHECK_OK(strata_request_free(&q[k]));
        suite_buffer_free(b[k], len[k]);
    }
}

/* Requests that the program lets go of finish by themselves. */
static void given_up(struct tw_rank *r)
{
    size_t len = suite_long(r->s);
    char *b = suite_buffer(len);
    strata_request_t *q = NULL;
    if (r->rank == 0) {
        pattern_fill(b, len, 4);
        CHECK_OK(strata_isend(r->comm, b, len, 1, 1, &q));
        CHECK_OK(strata_request_free(&q));
        CHECK(q == NULL);
        suite_await(r->comm, 1, 2); /* it has arrived: the memory is ours again */
    } else {
        CHECK_OK(strata_irecv(r->comm, b, len, 0, 1, &q));
        CHECK_OK(strata_wait(&q, NULL));
        CHECK_EQ(pattern_check(b, len, 4), -1);
        CHECK_OK(strata_irecv(r->comm, b, 8, 1, 3, &q));
        CHECK_OK(strata_request_free(&q));
        suite_send(r->comm, 8, 1, 3, 5); /* to oneself */
        while (pattern_check(b, 8, 5) >= 0)
            suite_spin(r->s, 1);
        suite_signal(r->comm, 0, 2);
    }
    suite_buffer_free(b, len);
}

/* Many long messages under way at once: more than a transport has resources for. */
static void many_long(struct tw_rank *r)
{
    enum { N = 64 };
    size_t len = suite_long(r->s) + 13;
    strata_request_t *q[N];
    char *b[N];
    for (int i = 0; i < N; i++) {
        b[i] = suite_buffer(len);
        if (r->rank == 0) {
            pattern_fill(b[i], len, (uint64_t)i);
            CHECK_OK(strata_isend(r->comm, b[i], len, 1, i, &q[i]));
        }
    }
    if (r->rank == 1) {
        suite_arrived(r->comm, 0, N - 1);
        for (int i = N - 1; i >= 0; i--)
            CHECK_OK(strata_irecv(r->comm, b[i], len, 0, i, &q[i]));
    }
    CHECK_OK(strata_waitall(N, q, NULL));
    for (int i = 0; i < N; i++) {
        CHECK_EQ(pattern_check(b[i], len, (uint64_t)i), -1);
        suite_buffer_free(b[i], len);
    }
}

static const struct suite_case cases[] = {
    {"persistent", 2, 0, persistent}, {"any_and_all", 2, 0, any_and_all}, {"any_persistent", 2, 0, any_persistent},
    {"given_up", 2, 0, given_up},     {"many_long", 2, 0, many_long},
};
SUITE_GROUP(suite_requests, cases);
