/* Landing rings between ranks (strata/sdk/landing_ends.h) over every transport that strata-info finds and the ways of
 * btl_shuffle: messages of random sizes in order, several senders, back-pressure and a slow consumer, both ends asleep,
 * threads. */
#include <pthread.h>
#include <time.h>
#include "support/landing_rings.h"
#include "support/over_transports.h"

/* Every rank sends to every other, on a ring of its own; nobody blocks. */
static void everybody_to_everybody(struct tw_rank *r)
{
    struct rings *u = join(r);
    uint32_t n = (uint32_t)suite_scale(2000), sent[RANKS] = {0}, got[RANKS] = {0}, left = 0;
    for (int i = 0; i < r->n; i++)
        if (i != r->rank)
            open_in(u, i, 5, RING);
    for (int i = 0; i < r->n; i++)
        if (i != r->rank)
            (void)open_out(u, i), left += 2;
    while (left)
        for (int i = 0; i < r->n; i++) {
            if (i == r->rank)
                continue;
            uint64_t seed = seed_of(r->rank, 5, sent[i]);
            struct st_landing_view v;
            int rc = sent[i] < n ? st_landing_sender_reserve(u->out[i][5], length_of(seed), &v) : STRATA_ERR_AGAIN;
            if (rc == STRATA_OK) {
                commit(u, u->out[i][5], &v, seed, sent[i] % 5 == 0);
                left -= ++sent[i] == n;
                if (sent[i] == n)
                    CHECK_OK(st_landing_sender_flush(u->out[i][5]));
            } else {
                CHECK_RC(rc, STRATA_ERR_AGAIN);
            }
            if (got[i] < n && take_one(u, i, 5, got[i]) == STRATA_OK)
                left -= ++got[i] == n;
            suite_spin(r->s, 1);
        }
    tw_quiesce(r);
    for (int i = 0; i < r->n; i++)
        if (i != r->rank) {
            struct st_landing_view v;
            CHECK_RC(st_landing_receiver_peek(u->in[i][5], &v), STRATA_ERR_AGAIN); /* none twice */
        }
    tw_barrier(r); /* nobody ends while another looks */
    for (int i = 0; i < r->n; i++)
        if (i != r->rank)
            CHECK_OK(st_landing_sender_end(u->out[i][5]));
    for (int i = 0; i < r->n; i++)
        if (i != r->rank)
            finish_in(u, i, 5);
    for (int i = 0; i < r->n; i++)
        if (i != r->rank)
            finish_out(u, i, 5);
    tw_quiesce(r);
    leave(u);
}

/* Many rings of one pair, of all sizes, in both directions. */
static void many_rings(struct tw_rank *r)
{
    enum { MANY = 40, EACH = 20 };
    struct rings *u = join(r);
    int peer = 1 - r->rank;
    for (uint32_t i = 0; i < MANY; i++)
        open_in(u, peer, i, (uint32_t)RING << i % 4);
    for (uint32_t i = 0; i < MANY; i++)
        (void)open_out(u, peer);
    for (uint32_t k = 0; k < EACH; k++)
        for (uint32_t i = 0; i < MANY; i++) {
            CHECK_OK(send_one(u, peer, i, k));
            CHECK_OK(receive_one(u, peer, i, k));
        }
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_OK(st_landing_sender_end(u->out[peer][i]));
        finish_in(u, peer, i);
        finish_out(u, peer, i);
    }
    tw_quiesce(r);
    leave(u);
}

/* The receiver takes nothing: the ring fills and stays as it is. Then it takes all, a few at a time. */
static void slow_consumer(struct tw_rank *r)
{
    struct rings *u = join(r);
    uint32_t n = 0, all = 600;
    if (r->rank == 0) {
        open_in(u, 1, 3, RING);
        tw_quiesce(r);
        for (; n < all; n++) {
            if (n % 30 == 0) /* the sender catches up */
                suite_spin(r->s, 20);
            CHECK_OK(receive_one(u, 1, 3, n));
        }
        finish_in(u, 1, 3);
    } else {
        struct st_landing_view v;
        (void)open_out(u, 0);
        const struct st_landing_out *out = st_landing_sender_out(u->out[0][3]);
        for (int idle = 0; idle < 1000;) {
            uint64_t seed = seed_of(1, 3, n);
            int rc = st_landing_sender_reserve(u->out[0][3], length_of(seed), &v);
            suite_spin(r->s, 1);
            idle = rc == STRATA_OK ? 0 : idle + 1;
            if (rc == STRATA_OK)
                commit(u, u->out[0][3], &v, seed, false), n++;
        }
        CHECK(n > 0 && n < all);
        CHECK_EQ(out->released, 0); /* all puts are done, and none of them was a credit */
        tw_quiesce(r);
        for (; n < all; n++)
            CHECK_OK(send_one(u, 0, 3, n));
        finish_out(u, 0, 3);
    }
    tw_quiesce(r);
    leave(u);
}

static void nap(struct rnd *rnd)
{
    if (rnd_below(rnd, 40) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000 * (long)rnd_below(rnd, 2000)}, NULL);
}

/* Both sides block, now the one, now the other, and are woken by notices. */
static void both_sleep(struct tw_rank *r)
{
    struct rings *u = join(r);
    uint32_t n = (uint32_t)suite_scale(1000);
    struct rnd rnd = {(uint64_t)r->rank + 77};
    if (r->rank == 0) {
        open_in(u, 1, 0, RING);
        for (uint32_t i = 0; i < n; i++, nap(&rnd))
            CHECK_OK(receive_one(u, 1, 0, i));
        finish_in(u, 1, 0);
    } else {
        (void)open_out(u, 0);
        for (uint32_t i = 0; i < n; i++, nap(&rnd))
            CHECK_OK(send_one(u, 0, 0, i));
        finish_out(u, 0, 0);
    }
    tw_quiesce(r);
    leave(u);
}

/* Several messages are held where they landed while others come. */
static void held_in_place(struct tw_rank *r)
{
    enum { HELD = 4 };
    struct rings *u = join(r);
    uint32_t n = (uint32_t)suite_scale(400) / HELD * HELD;
    if (r->rank == 0) {
        open_in(u, 1, 9, 8 * RING);
        for (uint32_t i = 0; i < n; i += HELD) {
            struct st_landing_view v[HELD];
            for (uint32_t k = 0; k < HELD; k++) {
                CHECK_OK(st_landing_receiver_wait(u->in[1][9]));
                CHECK_OK(st_landing_receiver_peek(u->in[1][9], &v[k]));
            }
            for (uint32_t k = 0; k < HELD; k++) {
                check(&v[k], seed_of(1, 9, i + k));
                CHECK_OK(st_landing_receiver_release(u->in[1][9], &v[k]));
            }
        }
        finish_in(u, 1, 9);
    } else {
        (void)open_out(u, 0);
        for (uint32_t i = 0; i < n; i++)
            CHECK_OK(send_one(u, 0, 9, i));
        finish_out(u, 0, 9);
    }
    tw_quiesce(r);
    leave(u);
}

/* ---- threads ---- */

struct job {
    struct rings *u;
    uint32_t name, n;
};

static void *thread_main(void *arg)
{
    struct job *j = arg;
    struct rings *u = j->u;
    for (uint32_t i = 0; i < j->n; i++)
        if (u->r->rank == 0)
            CHECK_OK(receive_one(u, 1, j->name, i));
        else
            CHECK_OK(send_one(u, 0, j->name, i));
    if (u->r->rank == 0)
        CHECK_EQ(st_landing_receiver_wait(u->in[1][j->name]), ST_LANDING_ENDED);
    else
        CHECK_OK(st_landing_sender_finish(u->out[0][j->name]));
    return NULL;
}

/* A thread for each end. */
static void threads(struct tw_rank *r)
{
    enum { THREADS = 3 };
    struct rings *u = join(r);
    struct job job[THREADS];
    pthread_t id[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        if (r->rank == 0)
            open_in(u, 1, i, RING);
        else
            (void)open_out(u, 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        job[i] = (struct job){u, i, (uint32_t)suite_scale(400)};
        CHECK_EQ(pthread_create(&id[i], NULL, thread_main, &job[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(id[i], NULL), 0);
    tw_quiesce(r);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (r->rank == 0)
            close_in(u, 1, i);
        else
            close_out(u, 0, i);
    }
    leave(u);
}

static const struct over_case cases[] = {
    {"everybody_to_everybody", everybody_to_everybody, RANKS, STRATA_THREAD_SINGLE, false},
    {"many_rings", many_rings, 2, STRATA_THREAD_SINGLE, false},
    {"slow_consumer", slow_consumer, 2, STRATA_THREAD_SINGLE, false},
    {"both_sleep", both_sleep, 2, STRATA_THREAD_SINGLE, false},
    {"held_in_place", held_in_place, 2, STRATA_THREAD_SINGLE, false},
    {"threads", threads, 2, STRATA_THREAD_MULTIPLE, false},
};

/* Waits end in sleep. */
#define ASLEEP "mca_base_spin=10 mca_base_yield=1"

OVER_SUITE(landing_ring, OVER_PUTS, cases, "btl=sm,self " ASLEEP,
           "btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50 " ASLEEP,
           "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100");
