/* Conformance at STRATA_THREAD_MULTIPLE: several threads of one rank send, receive, probe and wait at once. */
#include "support/suite.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4 };

struct worker {
    struct tw_rank *r;
    int id;
    pthread_t thread;
    atomic_int *shared;
};

static void on_threads(struct tw_rank *r, void *(*fn)(void *))
{
    struct worker w[THREADS];
    atomic_int shared = 0;
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.r = r, .id = i, .shared = &shared};
        CHECK_EQ(pthread_create(&w[i].thread, NULL, fn, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(w[i].thread, NULL);
}

/* Each thread has a tag of its own and plays ping-pong with its twin. */
static void *ping_pong(void *arg)
{
    struct worker *w = arg;
    struct tw_rank *r = w->r;
    size_t len[] = {8, 2000, suite_long(r->s)};
    int rounds = suite_scale(300);
    for (int i = 0; i < rounds; i++) {
        size_t n = i % 50 == 49 ? len[2] : len[i % 2];
        uint64_t seed = (uint64_t)(i * 10 + w->id);
        if (r->rank == 0) {
            suite_send(r->comm, n, 1, w->id, seed);
            suite_recv(r->comm, n, 1, w->id, seed + 1);
        } else {
            suite_recv(r->comm, n, 0, w->id, seed);
            suite_send(r->comm, n, 0, w->id, seed + 1);
        }
    }
    return NULL;
}

static void pairs(struct tw_rank *r)
{
    on_threads(r, ping_pong);
}

/* All threads take from the same queue by matched probe: every message goes to exactly one. */
static void *take_any(void *arg)
{
    struct worker *w = arg;
    struct tw_rank *r = w->r;
    int n = suite_scale(4000);
    if (r->rank == 0) {
        for (int i = w->id; i < n; i += THREADS)
            CHECK_OK(strata_send(r->comm, &i, sizeof i, 1, 7));
        return NULL;
    }
    while (atomic_fetch_add(w->shared, 1) < n) {
        strata_message_t *m = NULL;
        strata_status_t st;
        int v = -1;
        CHECK_OK(strata_mprobe(r->comm, STRATA_ANY_SOURCE, 7, &m, &st));
        CHECK_OK(strata_mrecv(&m, &v, sizeof v, &st));
        CHECK(v >= 0 && v < n);
        atomic_int *seen = r->arg;
        CHECK_EQ(atomic_fetch_add(&seen[v], 1), 0);
    }
    return NULL;
}

static void one_queue(struct tw_rank *r)
{
    int n = suite_scale(4000);
    atomic_int *seen = calloc((size_t)n, sizeof *seen);
    void *before = r->arg;
    CHECK(seen);
    r->arg = seen;
    on_threads(r, take_any);
    for (int i = 0; i < n && r->rank == 1; i++)
        CHECK_EQ(atomic_load(&seen[i]), 1);
    r->arg = before;
    free(seen);
}

/* Windows of nonblocking operations, waited for in different ways, contexts made and freed meanwhile. */
static void *window(void *arg)
{
    struct worker *w = arg;
    struct tw_rank *r = w->r;
    enum { W = 16 };
    int rounds = suite_scale(60), peer = 1 - r->rank;
    for (int k = 0; k < rounds; k++) {
        strata_comm_t *c = NULL;
        strata_comm_spec_t spec = {.size = sizeof spec, .id = 100 + (uint32_t)w->id, .rank = r->rank, .n_ranks = 2};
        strata_request_t *q[2 * W];
        char *b[2 * W];
        size_t len = k % 10 == 0 ? suite_long(r->s) : 64 + (size_t)k;
        CHECK_OK(strata_comm_create(r->s, &spec, &c));
        for (int i = 0; i < W; i++) {
            b[i] = suite_buffer(len);
            b[W + i] = suite_buffer(len);
            pattern_fill(b[W + i], len, (uint64_t)(w->id * 100 + i));
            CHECK_OK(strata_irecv(c, b[i], len, peer, i, &q[i]));
            CHECK_OK(strata_isend(c, b[W + i], len, peer, i, &q[W + i]));
        }
        if (w->id % 2) {
            int index = 0;
            while (index >= 0)
                CHECK_OK(strata_waitany(2 * W, q, &index, NULL));
        } else {
            int done = 0;
            while (!done)
                CHECK_OK(strata_testall(2 * W, q, &done, NULL));
        }
        for (int i = 0; i < W; i++) {
            CHECK_EQ(pattern_check(b[i], len, (uint64_t)(w->id * 100 + i)), -1);
            suite_buffer_free(b[i], len);
            suite_buffer_free(b[W + i], len);
        }
        CHECK_OK(strata_comm_free(c));
        int x = k;
        CHECK_OK(strata_sendrecv(r->comm, &x, sizeof x, peer, 200 + w->id, &x, sizeof x, peer, 200 + w->id, NULL));
    }
    return NULL;
}

static void windows(struct tw_rank *r)
{
    on_threads(r, window);
}

/* One thread waits for a message for long while others go on; a third completes its request by progress alone. */
static void *mixed(void *arg)
{
    struct worker *w = arg;
    struct tw_rank *r = w->r;
    int rounds = suite_scale(200), peer = 1 - r->rank;
    if (w->id == 0) {
        suite_await(r->comm, peer, 300); /* comes when the others are through */
    } else if (w->id == 1) {
        for (int i = 0; i < rounds; i++)
            strata_progress(r->s);
    } else {
        for (int i = 0; i < rounds; i++) {
            int v = i, got = -1;
            CHECK_OK(
                strata_sendrecv(r->comm, &v, sizeof v, peer, 300 + w->id, &got, sizeof got, peer, 300 + w->id, NULL));
            CHECK_EQ(got, i);
        }
        if (atomic_fetch_add(w->shared, 1) + 1 == THREADS - 2)
            suite_signal(r->comm, peer, 300);
    }
    return NULL;
}

static void waiting(struct tw_rank *r)
{
    on_threads(r, mixed);
}

static const struct suite_case cases[] = {
    {"pairs", 2, SUITE_MULTIPLE, pairs},
    {"one_queue", 2, SUITE_MULTIPLE, one_queue},
    {"windows", 2, SUITE_MULTIPLE, windows},
    {"waiting", 2, SUITE_MULTIPLE, waiting},
};
SUITE_GROUP(suite_threads, cases);
