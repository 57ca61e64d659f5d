#define _GNU_SOURCE 1
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>

struct pair {
    void (*body)(int side, void *arg);
    void *arg;
    int cpu;                /* of the second thread */
    _Atomic(int) may_start; /* 0: wait, 1: yes, -1: no */
    _Atomic(int) bound;     /* of the second thread: 0: not yet, 1: yes, -1: impossible */
};

static bool bind_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void *second(void *arg)
{
    struct pair *p = arg;
    atomic_store(&p->bound, bind_to(p->cpu) ? 1 : -1);
    while (atomic_load(&p->may_start) == 0)
        sched_yield();
    if (atomic_load(&p->may_start) > 0)
        p->body(1, p->arg);
    return NULL;
}

bool perf_pair(const int cpus[2], void (*body)(int side, void *arg), void *arg)
{
    struct pair p = {.body = body, .arg = arg, .cpu = cpus[1]};
    cpu_set_t before;
    pthread_t other;
    bool run = false;
    if (sched_getaffinity(0, sizeof before, &before) != 0 || !bind_to(cpus[0]))
        return false;
    if (pthread_create(&other, NULL, second, &p) == 0) {
        while (atomic_load(&p.bound) == 0)
            sched_yield();
        run = atomic_load(&p.bound) > 0;
        atomic_store(&p.may_start, run ? 1 : -1);
        if (run)
            body(0, arg);
        pthread_join(other, NULL);
    }
    sched_setaffinity(0, sizeof before, &before);
    return run;
}
