/* Patterns of all ranks at once: the ring, start-up and memory. */
#ifndef PERF_LOOPS_ALL_H
#define PERF_LOOPS_ALL_H

#include "loops_support.h"
#include "private_memory.h"

static double ring_steps(struct loops *l, size_t bytes, size_t steps)
{
    struct port *p = l->p;
    int right = (p->rank + 1) % p->n, left = (p->rank + p->n - 1) % p->n;
    double t = perf_now();
    for (size_t i = 0; i < steps; i++) {
        if (l->o->check)
            fill(l->sbuf, bytes, i * (size_t)p->n + (size_t)p->rank);
        port_sendrecv(p, l->sbuf, l->rbuf, bytes, right, left, TAG_DATA);
        if (l->o->check)
            verify(p, l->rbuf, bytes, i * (size_t)p->n + (size_t)left);
    }
    return perf_now() - t;
}

static void loop_ring(struct loops *l)
{
    for (size_t bytes = l->o->size_min; bytes <= l->o->size_max; bytes = next_size(bytes)) {
        size_t steps = iterations(l->o, bytes, 200);
        barrier(l->p);
        ring_steps(l, bytes, steps);
        for (size_t b = 0; b < l->o->batches; b++) {
            l->samples[b] = ring_steps(l, bytes, steps) / (double)steps * 1e6;
            note(l, bytes);
        }
        gather_max(l, l->samples, l->o->batches, l->p->n);
        show(l, NULL, "us", bytes, 0);
    }
}

/* Eight bytes to and from everyone. */
static void talk_to_all(struct port *p)
{
    char out[8] = {0}, in[8];
    for (int d = 1; d < p->n; d++)
        port_sendrecv(p, out, in, sizeof out, (p->rank + d) % p->n, (p->rank - d + p->n) % p->n, TAG_DATA);
}

/* One value per rank as the samples of a row. */
static void show_ranks(struct loops *l, const char *kind, const char *unit, double mine)
{
    struct port *p = l->p;
    double *all = malloc((size_t)p->n * sizeof *all);
    if (!all)
        port_fail(p, "out of memory", 0);
    gather(p, &mine, 1, p->n, all);
    struct perf_row row = {.kind = kind, .unit = unit, .samples = all, .n = (size_t)p->n};
    if (p->rank == 0)
        perf_report_row(l->report, &row);
    free(all);
}

static void loop_start(struct loops *l)
{
    talk_to_all(l->p);
    double talked = perf_now();
    barrier(l->p);
    show_ranks(l, "initialise", "s", l->p->t_ready - l->p->t_init);
    show_ranks(l, "talk to all", "s", talked - l->p->t_ready);
    show_ranks(l, "start", "s", talked - l->p->t_init);
}

/* `lines` adds what the library itself can say of its memory; may be NULL. */
static void loop_memory(struct loops *l, void (*lines)(struct loops *l))
{
    talk_to_all(l->p);
    barrier(l->p);
    double after = (double)perf_private_memory();
    show_ranks(l, "after init", "kB", (double)l->p->private_after_init * 1e-3);
    show_ranks(l, "after talking to all", "kB", after * 1e-3);
    if (lines)
        lines(l);
}

#endif
