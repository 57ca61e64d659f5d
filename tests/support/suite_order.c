/* Conformance: messages of one sender do not overtake each other, whatever the transport does to fragments. */
#include "support/suite.h"

/* Sizes that go by different protocols, all with one tag; taken by different kinds of receive. */
static void mixed_sizes(struct tw_rank *r)
{
    int n = suite_scale(1500);
    size_t limit = suite_long(r->s), size[80], count = suite_sizes(r->s, limit / 4, size, 80);
    struct rnd rnd = {7};
    enum { WINDOW = 16 };
    strata_request_t *q[WINDOW] = {NULL};
    char *b[WINDOW];
    size_t len[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        b[i] = suite_buffer(limit);
    for (int i = 0; i < n + WINDOW; i++) {
        int k = i % WINDOW;
        if (i >= WINDOW) {
            strata_status_t st;
            CHECK_OK(strata_wait(&q[k], &st));
            if (r->rank == 1) {
                CHECK_EQ(st.length, len[k]);
                ptrdiff_t bad = pattern_check(b[k], len[k], (uint64_t)(i - WINDOW));
                CHECK_MSG(bad < 0, "message %d of %zu bytes: byte %td is wrong", i - WINDOW, len[k], bad);
            }
        }
        if (i >= n)
            continue;
        len[k] = rnd_below(&rnd, 20) == 0 ? limit : size[rnd_below(&rnd, (uint32_t)count)];
        int kind = (int)rnd_below(&rnd, 4);
        if (r->rank == 0) {
            pattern_fill(b[k], len[k], (uint64_t)i);
            CHECK_OK(strata_isend_mode(r->comm, b[k], len[k], 1, 5, kind == 3 ? STRATA_SYNCHRONOUS : STRATA_STANDARD,
                                       &q[k]));
        } else {
            CHECK_OK(strata_irecv(r->comm, b[k], limit, kind & 1 ? 0 : STRATA_ANY_SOURCE, kind & 2 ? 5 : STRATA_ANY_TAG,
                                  &q[k]));
        }
    }
    for (int i = 0; i < WINDOW; i++)
        suite_buffer_free(b[i], limit);
}

/* More messages to one peer in one context than a 16-bit sequence number counts. */
static void sequence_wrap(struct tw_rank *r)
{
    enum { N = 70000, WINDOW = 256 };
    for (int base = 0; base < N; base += WINDOW) {
        for (int i = base; i < base + WINDOW && i < N; i++) {
            int v = -1;
            if (r->rank == 0) {
                CHECK_OK(strata_send(r->comm, &i, sizeof i, 1, 3));
            } else {
                CHECK_OK(strata_recv(r->comm, &v, sizeof v, i % 2 ? 0 : STRATA_ANY_SOURCE, 3, NULL));
                CHECK_EQ(v, i);
            }
        }
        if (r->rank == 0)
            suite_await(r->comm, 1, 4);
        else
            suite_signal(r->comm, 0, 4);
    }
}

/* The same through a matched probe and through probe + receive. */
static void probed(struct tw_rank *r)
{
    int n = suite_scale(2000);
    for (int i = 0; i < n; i++) {
        int v = -1;
        if (r->rank == 0) {
            CHECK_OK(strata_send(r->comm, &i, sizeof i, 1, i % 3));
            if (i % 128 == 127)
                suite_await(r->comm, 1, 9);
            continue;
        }
        strata_status_t st;
        strata_message_t *m = NULL;
        if (i % 2) {
            CHECK_OK(strata_mprobe(r->comm, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &m, &st));
            CHECK_OK(strata_mrecv(&m, &v, sizeof v, &st));
        } else {
            CHECK_OK(strata_probe(r->comm, 0, STRATA_ANY_TAG, &st));
            CHECK_OK(strata_recv(r->comm, &v, sizeof v, st.source, st.tag, &st));
        }
        CHECK_EQ(v, i);
        CHECK_EQ(st.tag, i % 3);
        if (i % 128 == 127)
            suite_signal(r->comm, 0, 9);
    }
}

static const struct suite_case cases[] = {
    {"mixed_sizes", 2, 0, mixed_sizes},
    {"sequence_wrap", 2, SUITE_SLOW, sequence_wrap},
    {"probed", 2, 0, probed},
};
SUITE_GROUP(suite_order, cases);
