/* Several collectives under way at once (strata/coll.h), over every transport that strata-info finds: waited for and
 * tested together, in any order, between blocking ones and messages of the program, from two threads. */
#include "support/coll_halves.h"
#include "support/over_transports.h"
#include "support/random.h"
#include <strata/coll.h>

enum { N = 12, LONG = 30000, ROUNDS = 40 };

static void add(void *arg, const void *in, void *inout, size_t count)
{
    CHECK(arg == NULL);
    for (size_t i = 0; i < count; i++)
        ((unsigned *)inout)[i] += ((const unsigned *)in)[i];
}

/* Allreduces and scans of `count` elements that are all rank + k in operation k. */
struct several {
    strata_coll_request_t *req[N];
    unsigned *block[N];
    size_t count;
    int size, rank;
};

static void several_start(struct several *v, strata_comm_t *comm, size_t count)
{
    *v = (struct several){.count = count, .size = strata_comm_size(comm), .rank = strata_comm_rank(comm)};
    for (int k = 0; k < N; k++) {
        strata_coll_t c = STRATA_COLL_INIT(k % 3 == 2 ? STRATA_SCAN : STRATA_ALLREDUCE);
        v->block[k] = malloc(count * sizeof(unsigned));
        CHECK(v->block[k]);
        for (size_t i = 0; i < count; i++)
            v->block[k][i] = (unsigned)(v->rank + k);
        c.send = STRATA_IN_PLACE, c.recv = v->block[k];
        c.count = count, c.element = sizeof(unsigned);
        c.reduce = add;
        CHECK_OK(strata_coll_start(comm, &c, &v->req[k]));
    }
}

static void several_check(struct several *v, int k)
{
    int n = k % 3 == 2 ? v->rank + 1 : v->size;
    CHECK(v->req[k] == NULL && v->block[k]);
    for (size_t i = 0; i < v->count; i++)
        CHECK_EQ(v->block[k][i], n * (n - 1) / 2 + n * k);
    free(v->block[k]);
    v->block[k] = NULL;
}

/* One call of each form of completion; `form` 0 to 4. */
static void several_finish(struct several *v, int form, struct rnd *r)
{
    int done = 0, index, failed = 0, left = N;
    for (int k = N - 1; k >= 0 && form == 0; k--) /* the last that was started is waited for first */
        CHECK_OK(strata_coll_wait(&v->req[k], NULL));
    if (form == 1)
        CHECK_OK(strata_coll_waitall(N, v->req, &failed));
    while (form == 2 && !done)
        CHECK_OK(strata_coll_testall(N, v->req, &done, &failed));
    for (; form >= 3 && left > 0; left -= done) {
        done = 1;
        if (form == 3 || rnd_below(r, 2))
            CHECK_OK(strata_coll_waitany(N, v->req, &index, &failed));
        else
            CHECK_OK(strata_coll_testany(N, v->req, &index, &done, &failed));
        CHECK(!done || (index >= 0 && index < N && failed == -1));
        if (done)
            several_check(v, index);
    }
    for (int k = 0; k < N && form < 3; k++)
        several_check(v, k);
}

static void together(struct tw_rank *r)
{
    struct rnd rnd = {(uint64_t)r->rank + 3};
    for (int i = 0; i < (test_sanitized() ? ROUNDS / 4 : ROUNDS); i++) {
        struct several v;
        several_start(&v, r->comm, i % 8 == 7 ? LONG : 1 + (size_t)i);
        several_finish(&v, (i + r->rank) % 5, &rnd); /* members complete them in forms and orders that differ */
    }
    tw_quiesce(r);
}

/* A blocking collective of the same communicator, and messages, while others are under way. */
static void between(struct tw_rank *r)
{
    int next = (r->rank + 1) % r->n, prev = (r->rank + r->n - 1) % r->n, mine = r->rank, got = -1;
    strata_coll_t barrier = STRATA_COLL_INIT(STRATA_BARRIER), bcast = STRATA_COLL_INIT(STRATA_BCAST);
    struct rnd rnd = {5};
    bcast.recv = &mine, bcast.count = 1, bcast.element = sizeof(mine);
    for (int i = 0; i < 10; i++) {
        struct several v;
        several_start(&v, r->comm, i == 9 ? LONG : 100);
        mine = r->rank + i;
        CHECK_OK(strata_sendrecv(r->comm, &mine, sizeof(mine), next, 5, &got, sizeof(got), prev, 5, NULL));
        CHECK_EQ(got, prev + i);
        CHECK_OK(strata_coll(r->comm, &barrier));
        bcast.root = i % r->n;
        CHECK_OK(strata_coll(r->comm, &bcast));
        CHECK_EQ(mine, bcast.root + i);
        several_finish(&v, i % 5, &rnd);
    }
    tw_quiesce(r);
}

static void *half_rounds(void *arg)
{
    const struct half *h = arg;
    struct rnd rnd = {(uint64_t)h->number};
    for (int i = 0; i < (test_sanitized() ? 5 : 20); i++) {
        struct several v;
        several_start(&v, h->comm, 1 + (size_t)i * 50);
        several_finish(&v, (i + h->number) % 5, &rnd);
    }
    return NULL;
}

/* Each of two threads has operations under way on a communicator of its own. */
static void two_threads(struct tw_rank *r)
{
    run_halves(r, 2100, half_rounds);
}

static void wrong_calls(struct tw_rank *r)
{
    strata_coll_request_t *none[2] = {NULL, NULL};
    int index = 7, done = 0, failed = 7;
    (void)r;
    CHECK_OK(strata_coll_waitall(2, none, &failed));
    CHECK_EQ(failed, -1);
    CHECK_OK(strata_coll_testall(2, none, &done, NULL));
    CHECK(done);
    CHECK_OK(strata_coll_waitany(2, none, &index, NULL));
    CHECK_EQ(index, -1);
    done = 0;
    CHECK_OK(strata_coll_testany(0, NULL, &index, &done, NULL));
    CHECK(done && index == -1);
    CHECK(strata_coll_done(NULL));
    CHECK_RC(strata_coll_waitall(1, NULL, NULL), STRATA_ERR_ARG);
    CHECK_RC(strata_coll_testall(2, none, NULL, NULL), STRATA_ERR_ARG);
    CHECK_RC(strata_coll_waitany(2, none, NULL, NULL), STRATA_ERR_ARG);
    CHECK_RC(strata_coll_testany(2, none, &index, NULL, NULL), STRATA_ERR_ARG);
}

static const struct over_case cases[] = {{"together", together, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
                                         {"between", between, 4, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
                                         {"two_threads", two_threads, 3, STRATA_THREAD_MULTIPLE, OVER_PROCESSES},
                                         {"wrong_calls", wrong_calls, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES}};

OVER_SUITE(coll_several, 0, cases, "btl=shuffle,self coll_sm_ranks=0 coll_arrival_ranks=0",
           "btl=sm,self coll_sm_ranks=0", "btl=tcp,self coll_sm_ranks=0 coll_arrival_form=pap_direct");
