/* A second client of the worker beside the PML (support/client.h), over every transport that strata-info finds and the
 * ways of btl_shuffle: both at once, back-pressure, a peer that fails, paths that fail, draining, threads.
 */
#include <stdlib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/pml.h>
#include "framework/base/context.h"
#include "support/client.h"
#include "support/over_transports.h"
#include "support/pattern.h"
#include "support/suite.h"

enum { RANKS = OVER_MOST, MESSAGES = 3000 };

/* What one rank has got of the client's messages. */
struct inbox {
    _Atomic(uint32_t) got;
    uint32_t from[RANKS];
    uint8_t seen[RANKS][MESSAGES];
};

static uint32_t length_of(int from, uint32_t number)
{
    return (uint32_t)(from + 7) * number % (CLIENT_MOST + 1);
}
static uint64_t seed_of(int from, int to, uint32_t number)
{
    return (uint64_t)from << 40 ^ (uint64_t)to << 36 ^ number;
}

struct taker {
    struct inbox *in;
    int rank;
};

static void take(void *arg, int from, uint32_t number, const void *data, uint32_t len)
{
    struct taker *t = arg;
    CHECK(number < MESSAGES);
    CHECK_EQ(t->in->seen[from][number]++, 0);
    CHECK_EQ(len, length_of(from, number));
    CHECK_EQ(pattern_check(data, len, seed_of(from, t->rank, number)), -1);
    t->in->from[from]++;
    atomic_fetch_add(&t->in->got, 1);
}

struct user {
    struct inbox *in;
    struct taker taker;
    struct client *c;
};

static void open_client(struct tw_rank *r, struct user *u)
{
    u->in = calloc(1, sizeof(*u->in));
    u->taker = (struct taker){u->in, r->rank};
    u->c = client_open(r->comm->worker, take, &u->taker);
    CHECK(u->in && u->c);
    tw_barrier(r); /* nothing is sent to who is not there */
}
static void close_client(struct user *u)
{
    client_close(u->c);
    free(u->in);
}

static int send_one(struct tw_rank *r, struct user *u, int to, uint32_t number)
{
    char data[CLIENT_MOST];
    uint32_t len = length_of(r->rank, number);
    pattern_fill(data, len, seed_of(r->rank, to, number));
    return client_send(u->c, to, data, len);
}

/* `n` messages to every other rank, and a message of the PML's among every few. */
static void exchange(struct tw_rank *r, struct user *u, uint32_t first, uint32_t n, bool pml)
{
    char out[3000], in[3000];
    for (uint32_t i = first; i < first + n; i++) {
        for (int k = 1; k < r->n; k++)
            CHECK_OK(send_one(r, u, (r->rank + k) % r->n, i));
        if (!pml || i % 16 != 0)
            continue;
        size_t len = i % sizeof(out);
        int to = (r->rank + 1) % r->n, from = (r->rank + r->n - 1) % r->n;
        pattern_fill(out, len, i);
        CHECK_OK(strata_sendrecv(r->comm, out, len, to, 1, in, sizeof(in), from, 1, NULL));
        CHECK_EQ(pattern_check(in, len, i), -1);
    }
}
static void await(struct tw_rank *r, struct user *u, uint32_t n)
{
    while (atomic_load(&u->in->got) < n)
        suite_spin(r->s, 1);
}

/* A network's connections may break at any time and are made again. */
static bool may_break(const strata_t *s)
{
    for (size_t i = 0; i < s->n_btls; i++)
        if (s->btls[i]->caps & ST_BTL_KEEP)
            return true;
    return false;
}

static void both_at_once(struct tw_rank *r)
{
    struct user u;
    open_client(r, &u);
    uint32_t n = test_sanitized() ? 200 : 1000;
    exchange(r, &u, 0, n, true);
    await(r, &u, n * (uint32_t)(r->n - 1));
    tw_quiesce(r);
    CHECK_EQ(atomic_load(&u.in->got), n * (uint32_t)(r->n - 1)); /* none twice, none from nowhere */
    if (strstr(r->arg, "break_rails"))
        CHECK(r->comm->worker->n_paths_failed != 0);
    else if (!may_break(r->s))
        CHECK_EQ(r->comm->worker->n_paths_failed, 0);
    close_client(&u);
}

static void to_oneself(struct tw_rank *r)
{
    struct user u;
    open_client(r, &u);
    for (uint32_t i = 0; i < 200; i++)
        CHECK_OK(send_one(r, &u, r->rank, i));
    await(r, &u, 200);
    tw_quiesce(r);
    close_client(&u);
}

/* A peer that is a process may take messages while this rank sends, even all of them. */
static bool meanwhile(void)
{
    return getenv("PMIX_RANK") != NULL;
}

/* More than any transport takes at once, and nobody looks: the rest waits, its number kept. */
static void back_pressure(struct tw_rank *r)
{
    struct user u;
    open_client(r, &u);
    if (r->rank == 0) {
        for (uint32_t i = 0; i < MESSAGES; i++)
            CHECK_OK(send_one(r, &u, 1, i));
        struct client_counts c = client_counts(u.c);
        fprintf(stderr, "%llu of %d messages waited\n", (unsigned long long)c.waited, MESSAGES);
        CHECK(c.waited > 0 || meanwhile());
    }
    tw_barrier(r);
    /* The PML's messages do not wait for them. */
    char x[8] = "", y[8];
    CHECK_OK(strata_sendrecv(r->comm, x, 8, (r->rank + 1) % r->n, 1, y, 8, (r->rank + r->n - 1) % r->n, 1, NULL));
    await(r, &u, r->rank == 1 ? MESSAGES : 0);
    tw_quiesce(r);
    CHECK_EQ(client_counts(u.c).waiting, 0);
    close_client(&u);
}

/* The worker's drain waits for what the client has queued. */
static void draining(struct tw_rank *r)
{
    struct user u;
    open_client(r, &u);
    if (r->rank == 0) {
        for (uint32_t i = 0; i < MESSAGES; i++)
            CHECK_OK(send_one(r, &u, 1, i));
        CHECK(client_counts(u.c).waiting > 0 || meanwhile());
    }
    tw_barrier(r);
    if (r->rank == 0) {
        st_worker_drain(r->comm->worker);
        CHECK_EQ(client_counts(u.c).waiting, 0);
    }
    await(r, &u, r->rank == 1 ? MESSAGES : 0);
    tw_quiesce(r);
    close_client(&u);
}

/* A peer is given up: both clients are told, what waits for it is dropped, the third rank is still reached by both. */
static _Atomic(int) survivors_through;

static void peer_fails(struct tw_rank *r)
{
    enum { VICTIM = 2 };
    struct user u;
    if (r->rank == VICTIM)
        atomic_store(&survivors_through, 0);
    char x[8] = "", y[8];
    open_client(r, &u);
    exchange(r, &u, 0, 8, true);
    await(r, &u, 8 * (uint32_t)(r->n - 1));
    tw_quiesce(r); /* what others send may need our progress */
    if (r->rank != VICTIM) {
        for (uint32_t i = 8; i < MESSAGES; i++)
            CHECK_OK(send_one(r, &u, VICTIM, i));
        uint64_t waiting = client_counts(u.c).waiting;
        CHECK(waiting > 0);
        CHECK_OK(strata_host_peer_failed(r->s, VICTIM, "the test says so"));
        while (client_counts(u.c).failed == 0)
            suite_spin(r->s, 1);
        struct client_counts c = client_counts(u.c);
        CHECK_EQ(c.failed, 1);
        CHECK_EQ(c.waiting, 0);
        CHECK(c.dropped > 0 && c.dropped <= waiting);
        CHECK_RC(send_one(r, &u, VICTIM, 8), STRATA_ERR_PEER);
        CHECK_RC(strata_send(r->comm, x, 8, VICTIM, 1), STRATA_ERR_PEER);
        int other = 1 - r->rank;
        for (uint32_t i = 8; i < 40; i++)
            CHECK_OK(send_one(r, &u, other, i));
        CHECK_OK(strata_sendrecv(r->comm, x, 8, other, 2, y, 8, other, 2, NULL));
        while (u.in->from[other] < 40)
            suite_spin(r->s, 1);
        /* What the other still waits for may need our progress. */
        atomic_fetch_add(&survivors_through, 1);
        while (atomic_load(&survivors_through) < 2)
            suite_spin(r->s, 1);
    }
    tw_barrier(r);         /* until here the victim takes nothing */
    if (r->rank == VICTIM) /* it hears nothing of it: it is told, so that it ends as well */
        for (int p = 0; p < 2; p++)
            CHECK_OK(strata_host_peer_failed(r->s, p, "the test is over"));
    tw_quiesce(r);
    close_client(&u);
}

/* Two threads send by the client, two by the PML, at once. */
struct sender {
    struct tw_rank *r;
    struct user *u;
    int which;
};
enum { OF_A_THREAD = 250 };

static void *send_some(void *arg)
{
    struct sender *s = arg;
    int other = 1 - s->r->rank, tag = 10 + s->which;
    char out[64] = "", in[64];
    uint32_t len = 64;
    for (int i = 0; i < OF_A_THREAD; i++) {
        if (s->which < 2)
            CHECK_OK(client_send(s->u->c, other, out, len));
        else
            CHECK_OK(strata_sendrecv(s->r->comm, out, len, other, tag, in, len, other, tag, NULL));
    }
    return NULL;
}
static void count(void *arg, int from, uint32_t number, const void *data, uint32_t len)
{
    struct taker *t = arg;
    (void)data;
    CHECK_EQ(len, 64);
    CHECK_EQ(t->in->seen[from][number]++, 0);
    atomic_fetch_add(&t->in->got, 1);
}
static void threads(struct tw_rank *r)
{
    struct user u = {.in = calloc(1, sizeof(*u.in))};
    u.taker = (struct taker){u.in, r->rank};
    u.c = client_open(r->comm->worker, count, &u.taker);
    CHECK(u.in && u.c);
    tw_barrier(r);
    struct sender s[4];
    pthread_t id[4];
    for (int i = 0; i < 4; i++) {
        s[i] = (struct sender){r, &u, i};
        CHECK_EQ(pthread_create(&id[i], NULL, send_some, &s[i]), 0);
    }
    await(r, &u, 2 * OF_A_THREAD);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(id[i], NULL), 0);
    tw_quiesce(r);
    close_client(&u);
}

#define ALSO_PROCESSES (OVER_PROCESSES | OVER_MORE)
static const struct over_case cases[] = {
    {"both_at_once", both_at_once, 3, STRATA_THREAD_SINGLE, ALSO_PROCESSES},
    {"to_oneself", to_oneself, 2, STRATA_THREAD_SINGLE, ALSO_PROCESSES},
    {"back_pressure", back_pressure, 3, STRATA_THREAD_SINGLE, ALSO_PROCESSES},
    {"draining", draining, 2, STRATA_THREAD_SINGLE, ALSO_PROCESSES},
    {"peer_fails", peer_fails, 3, STRATA_THREAD_SINGLE, OVER_QUIET},
    {"threads", threads, 2, STRATA_THREAD_MULTIPLE, OVER_PROCESSES},
};

#define BREAKS "btl_shuffle_rails=3 btl_shuffle_break_rails=2 btl_shuffle_break_after=40 pml_ob1_path_retry_ms=1 "

OVER_SUITE(clients, 0, cases, "btl=shuffle,self btl_shuffle_window=2 btl_shuffle_again_percent=50 btl_shuffle_gather=0",
           "btl=shuffle,self btl_shuffle_rails=3 btl_shuffle_window=8", "btl=shuffle,self " BREAKS "btl_shuffle_seed=3",
           "btl=shuffle,self " BREAKS "btl_shuffle_break_silent=1 btl_shuffle_seed=4");
