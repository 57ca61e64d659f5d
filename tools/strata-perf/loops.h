/* All measurements that run inside a job, over whichever port header was included before. */
#ifndef PERF_LOOPS_H
#define PERF_LOOPS_H

#include "loops_all.h"
#include "loops_coll.h"
#include "loops_match.h"
#include "loops_pair.h"
#include <sched.h>

/* Binds the calling rank as --cpus says. */
static void bind_rank(const struct perf_options *o, struct port *p)
{
    cpu_set_t set;
    if (o->n_cpus == 0)
        return;
    int cpu = o->cpus[(size_t)p->rank % o->n_cpus];
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        char text[80];
        snprintf(text, sizeof text, "--cpus: cannot run on processor %d", cpu);
        port_fail(p, text, 0);
    }
}

static int ranks_needed(enum perf_test test)
{
    return test == PERF_BW || test == PERF_BIBW || test == PERF_MBW || test == PERF_MATCH ? 2 : 1;
}

static void run_loops(struct port *p, const struct perf_options *o, void (*memory_lines)(struct loops *l))
{
    struct perf_report report;
    struct loops l = {.p = p, .o = o, .report = &report};
    if (o->test == PERF_MATCH || o->test == PERF_START || o->test == PERF_MEMORY)
        l.buf_size = MATCH_BYTES;
    else if (o->cold && o->test == PERF_LATENCY)
        l.buf_size = perf_slot_size(o->size_max);
    else if (o->test == PERF_LATENCY || o->test == PERF_RING || o->one_buffer)
        l.buf_size = o->size_max;
    else if (o->test == PERF_COLL) /* blocks of all ranks */
        l.buf_size = o->size_max * (size_t)p->n;
    else if (perf_slot_size(o->size_max) * o->window < PERF_WINDOW_BYTES)
        l.buf_size = perf_slot_size(o->size_max) * o->window;
    else
        l.buf_size = perf_slot_size(o->size_max) > PERF_WINDOW_BYTES ? perf_slot_size(o->size_max) : PERF_WINDOW_BYTES;
    if (o->cold && l.buf_size < largest_cache())
        l.buf_size = largest_cache();
    bind_rank(o, p);
    l.sbuf = pages(p, l.buf_size + o->offset) + o->offset;
    l.rbuf = pages(p, l.buf_size + o->offset) + o->offset;
    l.samples = malloc(o->batches * sizeof *l.samples);
    l.reqs = malloc(2 * o->window * sizeof(port_req));
    if (!l.samples || !l.reqs)
        port_fail(p, "out of memory", 0);
    exchange_begin(&l);
    if (p->rank == 0)
        perf_report_begin(&report, o, PORT_NAME, p->n);
    switch (o->test) {
    case PERF_LATENCY:
        loop_latency(&l);
        break;
    case PERF_BW:
    case PERF_BIBW:
        loop_bandwidth(&l, 1, o->test == PERF_BIBW);
        break;
    case PERF_MBW:
        loop_bandwidth(&l, p->n / 2, false);
        break;
    case PERF_MATCH:
        loop_match(&l);
        break;
    case PERF_RING:
        loop_ring(&l);
        break;
    case PERF_START:
        loop_start(&l);
        break;
    case PERF_MEMORY:
        loop_memory(&l, memory_lines);
        break;
    case PERF_COLL:
        loop_coll(&l);
        break;
    case PERF_WORLD:
    case PERF_COMPARE:
    case PERF_CHANNEL:
    case PERF_N_TESTS:
        break;
    }
    if (p->rank == 0)
        perf_report_end(&report);
    exchange_end(&l);
    free(l.samples);
    free(l.reqs);
    munmap(l.sbuf, l.buf_size ? l.buf_size : 1);
    munmap(l.rbuf, l.buf_size ? l.buf_size : 1);
}

#endif
