/* Collectives whose members arrive at different times: the two micro-benchmarks of Qian and Afsahi, "Process Arrival
 * Pattern and Shared Memory Aware Alltoall on InfiniBand", sections 3 and 5.1. Delays are random up to MIF times the
 * time of one message, or of MIF such times for some of the ranks. */
#ifndef PERF_LOOPS_COLL_H
#define PERF_LOOPS_COLL_H

#include <errno.h>
#include <math.h>
#include <time.h>
#include "coll_arrivals.h"
#include "loops_pair.h"

/* Seconds that ranks have to learn when a call begins. */
#define COLL_LEAD 300e-6

/* Sleeps, so that a late rank takes no processor from those that are in the call. */
static void sleep_until(double t)
{
    struct timespec at = {(time_t)t, (long)((t - floor(t)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

/* Time from which all ranks count their delays: rank 0's clock, a little ahead. */
static double agree_on_begin(struct port *p)
{
    double t = 0;
    barrier(p);
    if (p->rank == 0)
        t = perf_now() + COLL_LEAD + 10e-6 * p->n;
    for (int r = 1; p->rank == 0 && r < p->n; r++)
        port_send(p, &t, sizeof t, r, TAG_MARK);
    if (p->rank != 0)
        port_recv(p, &t, sizeof t, 0, TAG_MARK);
    return t;
}

static void coll_fill(struct loops *l, enum perf_coll_op op, size_t bytes, uint64_t seed)
{
    size_t n = (size_t)l->p->n, rank = (size_t)l->p->rank;
    if (op == PERF_COLL_ALLTOALL)
        for (size_t r = 0; r < n; r++)
            fill(l->sbuf + r * bytes, bytes, (seed * n + rank) * n + r);
    else if (op == PERF_COLL_BCAST && rank == 0)
        fill(l->rbuf, bytes, seed);
    else if (op == PERF_COLL_ALLGATHER)
        fill(l->sbuf, bytes, seed * n + rank);
    else if (op == PERF_COLL_ALLREDUCE)
        memset(l->sbuf, 1, bytes);
}

/* A sum of bytes of 1 is n in each byte, while n < 256: that of words too. */
static void coll_verify(struct loops *l, enum perf_coll_op op, size_t bytes, uint64_t seed)
{
    size_t n = (size_t)l->p->n, rank = (size_t)l->p->rank;
    if (op == PERF_COLL_ALLTOALL)
        for (size_t r = 0; r < n; r++)
            verify(l->p, l->rbuf + r * bytes, bytes, (seed * n + r) * n + rank);
    else if (op == PERF_COLL_BCAST)
        verify(l->p, l->rbuf, bytes, seed);
    else if (op == PERF_COLL_ALLGATHER)
        for (size_t r = 0; r < n; r++)
            verify(l->p, l->rbuf + r * bytes, bytes, seed * n + r);
    else if (op == PERF_COLL_ALLREDUCE)
        for (size_t i = 0; n < 256 && i < bytes; i++)
            if ((unsigned char)l->rbuf[i] != n)
                port_fail(l->p, "--check: a sum is wrong", 0);
}

/* One call of all ranks, this one `delay` seconds after the beginning. */
static void coll_call(struct loops *l, enum perf_coll_op op, size_t bytes, double delay, uint64_t seed,
                      struct coll_times *out)
{
    if (l->o->check)
        coll_fill(l, op, bytes, seed);
    double begin = agree_on_begin(l->p);
    sleep_until(begin + delay);
    out->arrival = perf_now();
    port_coll(l->p, op, l->sbuf, l->rbuf, bytes);
    out->exit = perf_now();
    if (l->o->check)
        coll_verify(l, op, bytes, seed);
}

/* One cell of the tables: batches of calls. On rank 0 `cell` has the samples, means over the calls of a batch. */
static void coll_cell(struct loops *l, enum perf_coll_op op, size_t bytes, double longest, struct coll_cell *cell)
{
    struct port *p = l->p;
    size_t calls = l->o->iters ? l->o->iters : bytes <= 65536 ? 20 : 5, n = (size_t)p->n;
    struct coll_times *mine = malloc(calls * sizeof *mine), *all = malloc(calls * n * sizeof *all);
    if (!mine || !all)
        port_fail(p, "out of memory", 0);
    for (size_t b = 0; b <= l->o->batches; b++) { /* the first does not count */
        for (size_t i = 0; i < calls; i++)
            coll_call(l, op, bytes, coll_delay(b * calls + i, p->rank, p->n, l->o->coll.late, longest), b * calls + i,
                      &mine[i]);
        gather(p, (const double *)mine, calls * sizeof *mine / sizeof(double), p->n, (double *)all);
        if (p->rank == 0 && b > 0)
            coll_cell_add(cell, b - 1, all, calls, n);
        note(l, bytes);
    }
    free(mine);
    free(all);
}

static void coll_show(struct loops *l, enum perf_coll_op op, size_t bytes, unsigned factor, struct coll_cell *cell)
{
    if (l->p->rank == 0)
        perf_report_coll(l->report, perf_coll_op_name(op), bytes, factor, cell);
}

/* us of one message of so many bytes between the first rank and the last. */
static double coll_base(struct loops *l, size_t bytes, size_t which)
{
    struct port *p = l->p;
    size_t times = bytes <= 65536 ? 200 : 20;
    double t = 0, best = 0;
    if (which < l->o->coll.n_bases)
        return l->o->coll.base[which];
    for (int b = 0; p->n > 1 && b < 5; b++) {
        barrier(p);
        t = perf_now();
        for (size_t i = 0; i < times && (p->rank == 0 || p->rank == p->n - 1); i++) {
            if (p->rank == 0)
                port_send(p, l->sbuf, bytes, p->n - 1, TAG_DATA);
            port_recv(p, l->rbuf, bytes, p->rank == 0 ? p->n - 1 : 0, TAG_DATA);
            if (p->rank != 0)
                port_send(p, l->sbuf, bytes, 0, TAG_DATA);
        }
        t = (perf_now() - t) / (double)times / 2 * 1e6;
        best = b == 0 || t < best ? t : best;
    }
    for (int r = 1; p->rank == 0 && r < p->n; r++)
        port_send(p, &best, sizeof best, r, TAG_MARK);
    if (p->rank != 0)
        port_recv(p, &best, sizeof best, 0, TAG_MARK);
    return best;
}

static void loop_coll(struct loops *l)
{
    const struct perf_coll_options *c = &l->o->coll;
    for (unsigned op = 0; op < PERF_COLL_OPS; op++) {
        bool sized = op != PERF_COLL_BARRIER;
        size_t first = sized ? l->o->size_min : 0, last = sized ? l->o->size_max : 0, which = 0;
        for (size_t bytes = first; (c->ops & 1u << op) && bytes <= last; bytes = next_size(bytes), which++) {
            struct coll_cell cell = {.base = coll_base(l, bytes, which)}, none = {.base = cell.base};
            coll_cell_make(&cell, l->o->batches);
            coll_cell_make(&none, l->o->batches);
            if (!cell.ok || !none.ok)
                port_fail(l->p, "out of memory", 0);
            coll_cell(l, op, bytes, 0, &none);
            none.resolution = cell.resolution = coll_cell_skew(&none);
            for (size_t f = 0; f < c->n_factors; f++) {
                cell.planned = coll_planned(l->p->n, c->late, c->factor[f] * cell.base);
                if (c->factor[f])
                    coll_cell(l, op, bytes, c->factor[f] * cell.base * 1e-6, &cell);
                coll_show(l, op, bytes, c->factor[f], c->factor[f] ? &cell : &none);
            }
            coll_cell_free(&cell);
            coll_cell_free(&none);
        }
    }
}

#endif
