/* A word of shared memory that two sides write in turn: the bare exchange of a cache line. */
#ifndef PERF_EXCHANGE_BALL_H
#define PERF_EXCHANGE_BALL_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include "pair.h"

struct exchange_side {
    _Atomic(uint32_t) *ball; /* 0 at first, alone on its cache line */
    int side;                /* 0 or 1 */
    uint32_t turns;          /* so far; the same at both sides between two calls */
};

static inline void exchange_await(_Atomic(uint32_t) *ball, uint32_t value)
{
    uint32_t turns = 0;
    while (atomic_load_explicit(ball, memory_order_acquire) != value)
        perf_pair_wait(&turns);
}

#define EXCHANGE_TURNS 25u /* round trips of a series */

/* Makes a series of round trips; both sides call it. Returns the one-way time in us. */
static inline double exchange_series(struct exchange_side *s)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (unsigned i = 0; i < EXCHANGE_TURNS; i++, s->turns += 2) {
        exchange_await(s->ball, s->turns + (uint32_t)s->side);
        atomic_store_explicit(s->ball, s->turns + (uint32_t)s->side + 1, memory_order_release);
    }
    if (s->side == 0)
        exchange_await(s->ball, s->turns);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3) / EXCHANGE_TURNS / 2;
}

/* The shortest one-way time in us of so many series; both sides call it. */
static inline double exchange_best(struct exchange_side *s, unsigned series)
{
    double best = 0;
    for (unsigned i = 0; i < series; i++) {
        double us = exchange_series(s);
        if (i == 0 || us < best)
            best = us;
    }
    return best;
}

#endif
