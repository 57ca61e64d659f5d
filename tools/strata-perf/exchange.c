#define _GNU_SOURCE 1
#include "exchange.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "strata/sdk/clock.h"

enum { TURNS = 100, BATCHES = 200 };

struct table {
    _Alignas(64) _Atomic(unsigned) ball; /* even: the caller's turn */
    _Alignas(64) int cpu;
    _Atomic(bool) ready;
};

static bool bind_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void *other_side(void *arg)
{
    struct table *t = arg;
    bind_to(t->cpu);
    atomic_store(&t->ready, true);
    for (unsigned i = 0; i < TURNS * BATCHES; i++) {
        unsigned spins = 0;
        while (atomic_load_explicit(&t->ball, memory_order_acquire) != 2 * i + 1)
            if (++spins > 100000) /* both on one processor, or the machine is busy */
                sched_yield();
        atomic_store_explicit(&t->ball, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

double perf_exchange(int cpu_a, int cpu_b)
{
    struct table t = {.ball = 0, .cpu = cpu_b};
    cpu_set_t before;
    pthread_t other;
    double best = 0;
    if (sched_getaffinity(0, sizeof before, &before) != 0 || !bind_to(cpu_a))
        return 0;
    if (pthread_create(&other, NULL, other_side, &t) == 0) {
        while (!atomic_load(&t.ready))
            sched_yield();
        for (unsigned b = 0, i = 0; b < BATCHES; b++) {
            uint64_t start = st_now_ns();
            for (unsigned k = 0; k < TURNS; k++, i++) {
                unsigned spins = 0;
                atomic_store_explicit(&t.ball, 2 * i + 1, memory_order_release);
                while (atomic_load_explicit(&t.ball, memory_order_acquire) != 2 * i + 2)
                    if (++spins > 100000)
                        sched_yield();
            }
            double us = (double)(st_now_ns() - start) / TURNS / 2 / 1e3;
            if (best == 0 || us < best)
                best = us;
        }
        pthread_join(other, NULL);
    }
    sched_setaffinity(0, sizeof before, &before);
    return best;
}
