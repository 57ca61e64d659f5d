/* Two threads of this process, each bound to a processor: the measurements of the bare machine run in them. */
#ifndef PERF_PAIR_H
#define PERF_PAIR_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls body(0, arg) in the calling thread, bound to cpus[0], and body(1, arg) in a second thread, bound to cpus[1],
 * and waits for both. Afterwards the calling thread has its processors again. Returns false if the thread cannot be
 * made or bound to a processor; body is then not called. */
bool perf_pair(const int cpus[2], void (*body)(int side, void *arg), void *arg);

/* One turn of a wait loop. It yields after many turns, since both threads may share one processor, or the machine may
 * be busy. */
static inline void perf_pair_wait(uint32_t *turns)
{
    if (++*turns > 10000)
        sched_yield();
}

#endif
