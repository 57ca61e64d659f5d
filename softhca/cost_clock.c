/* Spending time exactly. The clock is the processor's counter where that counts evenly, since reading it is a tenth of
 * CLOCK_MONOTONIC; elsewhere the latter. What is not between the first look at it and the last one, the call itself,
 * is measured once and subtracted. What a spin lasts too long, by its last look, the next one is shorter: so the
 * sum is exact. */
#include "cost.h"

#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

static struct {
    bool counter;      /* the processor's; else CLOCK_MONOTONIC, in ns */
    double ticks;      /* of a picosecond */
    int64_t outside;   /* ticks that a spin takes beyond what it sees */
    int64_t late_most; /* ticks; who is later lost the processor, which is no fault of the spin's */
} rate = {.ticks = 1e-3};
static _Atomic(int64_t) late; /* ticks of the last spin */

#define LATE_NS 200.0

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    if (rate.counter)
        return __rdtsc();
#endif
    return hca_now_ns();
}

uint64_t hca_cost_ticks(void)
{
    return ticks();
}

void hca_cost_spin(uint64_t begin, uint64_t ps)
{
    const int64_t want =
        (int64_t)((double)ps * rate.ticks) - rate.outside - atomic_load_explicit(&late, memory_order_relaxed);
    int64_t after = (int64_t)(ticks() - begin) - want;

    if (after >= 0) { /* counting alone took that long */
        atomic_store_explicit(&late, 0, memory_order_relaxed);
        return;
    }
    while (after < 0)
        after = (int64_t)(ticks() - begin) - want;
    atomic_store_explicit(&late, after <= rate.late_most ? after : 0, memory_order_relaxed);
}

/* ---- calibration ---- */

#if defined(__x86_64__)
/* One that goes on at the same rate whatever the processor does. */
static bool counts_evenly(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d >> 8 & 1);
}

struct moment {
    uint64_t counter, ns;
};

/* Both clocks at once: of several looks the one that took the shortest. */
static struct moment look(void)
{
    struct moment best = {0};
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < 20; i++) {
        const uint64_t before = __rdtsc(), ns = hca_now_ns(), took = __rdtsc() - before;
        if (took < shortest) {
            shortest = took;
            best = (struct moment){before + took / 2, ns};
        }
    }
    return best;
}

static double rate_between(const struct moment *a, const struct moment *b)
{
    return (double)(b->counter - a->counter) / ((double)(b->ns - a->ns) * 1000.0);
}

/* False where two rates one after the other differ: then it is not the clock that it says it is. */
static bool measure_counter(void)
{
    const struct timespec pause = {0, 5000000};
    struct moment at[3];

    for (int i = 0; i < 3; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        at[i] = look();
    }
    const double first = rate_between(&at[0], &at[1]), second = rate_between(&at[1], &at[2]);
    if (!(first > 1e-5 && first < second * 1.001 && second < first * 1.001))
        return false;
    rate.ticks = rate_between(&at[0], &at[2]);
    return true;
}
#endif

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

#define BATCHES 31
#define BATCH   32

/* That a call is made at all is no cost: programs make the same without. */
static __attribute__((noinline)) void nothing(void)
{
    __asm__ volatile("");
}

/* Ticks of a call; the middle of some batches, since others lost the processor. */
static int64_t ticks_of(void (*call)(void))
{
    int64_t each[BATCHES];

    for (int i = 0; i < BATCHES; i++) {
        const uint64_t begin = ticks();
        for (int k = 0; k < BATCH; k++)
            call();
        each[i] = (int64_t)(ticks() - begin) / BATCH;
    }
    qsort(each, BATCHES, sizeof *each, by_value);
    return each[BATCHES / 2];
}

static int64_t measure_outside(void (*one)(void), uint64_t ps)
{
    const int64_t over = ticks_of(one) - ticks_of(nothing) - (int64_t)((double)ps * rate.ticks);
    const int64_t most = rate.late_most / 2;

    return over < 0 ? 0 : over > most ? most : over;
}

void hca_cost_calibrate(void (*one)(void), uint64_t ps)
{
#if defined(__x86_64__)
    rate.counter = counts_evenly() && measure_counter();
#endif
    if (!rate.counter)
        rate.ticks = 1e-3;
    rate.late_most = (int64_t)(LATE_NS * 1000.0 * rate.ticks);
    rate.outside = measure_outside(one, ps);
}
