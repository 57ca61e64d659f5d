/* Ping-pong and bandwidth between pairs of ranks. */
#ifndef PERF_LOOPS_PAIR_H
#define PERF_LOOPS_PAIR_H

#include <sys/resource.h>
#include "loops_exchange.h"
#include "loops_support.h"

/* `plain` is a constant in every call: two loops, one without a trace of --check and --cold. */
static inline __attribute__((always_inline)) void ping(struct loops *l, size_t bytes, size_t iters, int peer,
                                                       const bool plain)
{
    struct port *p = l->p;
    for (size_t i = 0; i < iters; i++) {
        char *out = plain ? l->sbuf : message_at(l, l->sbuf, bytes, 0, 0);
        char *in = plain ? l->rbuf : message_at(l, l->rbuf, bytes, 0, 0);
        if (!plain && l->o->check)
            fill(out, bytes, 2 * i);
        port_send(p, out, bytes, peer, TAG_DATA);
        port_recv(p, in, bytes, peer, TAG_DATA);
        if (!plain && l->o->check)
            verify(p, in, bytes, 2 * i + 1);
        l->turn += !plain;
    }
}

static inline __attribute__((always_inline)) void pong(struct loops *l, size_t bytes, size_t iters, int peer,
                                                       const bool plain)
{
    struct port *p = l->p;
    for (size_t i = 0; i < iters; i++) {
        char *out = plain ? l->sbuf : message_at(l, l->sbuf, bytes, 0, 0);
        char *in = plain ? l->rbuf : message_at(l, l->rbuf, bytes, 0, 0);
        port_recv(p, in, bytes, peer, TAG_DATA);
        if (!plain && l->o->check) {
            verify(p, in, bytes, 2 * i);
            fill(out, bytes, 2 * i + 1);
        }
        port_send(p, out, bytes, peer, TAG_DATA);
        l->turn += !plain;
    }
}

/* Alone: a message to oneself, receive posted first. Two of them, as the caller counts round trips. */
static void echo(struct loops *l, size_t bytes, size_t iters)
{
    port_req req[2];
    for (size_t i = 0; i < 2 * iters; i++) {
        if (l->o->check)
            fill(l->sbuf, bytes, i);
        port_irecv(l->p, l->rbuf, bytes, 0, TAG_DATA, &req[0]);
        port_isend(l->p, l->sbuf, bytes, 0, TAG_DATA, &req[1]);
        port_waitall(l->p, 2, req);
        if (l->o->check)
            verify(l->p, l->rbuf, bytes, i);
    }
}

/* Seconds for `iters` round trips, as seen by the calling rank. A function of its own, so that an instruction counter
 * can be told to count there (bench/instructions.sh). */
static __attribute__((noinline)) double round_trips(struct loops *l, size_t bytes, size_t iters)
{
    double t = perf_now();
    if (l->p->n == 1)
        echo(l, bytes, iters);
    else if (l->p->rank == 0 && !l->o->check && !l->o->cold)
        ping(l, bytes, iters, 1, true);
    else if (l->p->rank == 0)
        ping(l, bytes, iters, 1, false);
    else if (!l->o->check && !l->o->cold)
        pong(l, bytes, iters, 0, true);
    else
        pong(l, bytes, iters, 0, false);
    return perf_now() - t;
}

static void loop_latency(struct loops *l)
{
    for (size_t bytes = l->o->size_min; l->p->rank < 2 && bytes <= l->o->size_max; bytes = next_size(bytes)) {
        size_t iters = iterations(l->o, bytes, 2000);
        round_trips(l, bytes, iters); /* warm-up: one batch that does not count */
        exchange_read(l, 0);
        for (size_t b = 0; b < l->o->batches; b++) {
            l->samples[b] = round_trips(l, bytes, iters) / (double)iters / 2 * 1e6;
            exchange_read(l, b + 1);
            note(l, bytes);
        }
        show(l, NULL, "us", bytes, 0);
    }
}

/* Posts the receives of a window; how many. */
static size_t post_window(struct loops *l, size_t bytes, size_t slot, int peer, port_req *reqs)
{
    size_t w = perf_window(l->o, bytes);
    for (size_t k = 0; k < w; k++)
        port_irecv(l->p, message_at(l, l->rbuf, bytes, slot, k), bytes, peer, TAG_DATA, &reqs[k]);
    return w;
}

/* A window of messages each way that is asked for; the receiver answers a window with one byte. With --unexpected a
 * byte follows the messages of a window, and is received before they are. */
static void windows(struct loops *l, size_t bytes, size_t iters, int peer, bool sends, bool receives)
{
    struct port *p = l->p;
    size_t w = perf_window(l->o, bytes), slot = l->o->one_buffer ? 0 : perf_slot_size(bytes);
    char ack = 0, ack_in = 0;
    bool late = l->o->unexpected;
    for (size_t i = 0; i < iters; i++) {
        port_req *reqs = l->reqs;
        size_t n = 0;
        if (receives && !late)
            n += post_window(l, bytes, slot, peer, reqs + n);
        for (size_t k = 0; sends && l->o->check && k < w; k++)
            fill(message_at(l, l->sbuf, bytes, slot, k), bytes, i * w + k);
        if (sends)
            for (size_t k = 0; k < w; k++)
                port_isend(p, message_at(l, l->sbuf, bytes, slot, k), bytes, peer, TAG_DATA, &reqs[n++]);
        if (sends && late)
            port_send(p, &ack, 1, peer, TAG_MARK);
        if (receives && late) {
            port_recv(p, &ack_in, 1, peer, TAG_MARK);
            n += post_window(l, bytes, slot, peer, reqs + n);
        }
        port_waitall(p, n, reqs);
        for (size_t k = 0; receives && l->o->check && k < w; k++)
            verify(p, message_at(l, l->rbuf, bytes, slot, k), bytes, i * w + k);
        if (receives && !sends)
            port_send(p, &ack, 1, peer, TAG_ACK);
        else if (sends && !receives)
            port_recv(p, &ack_in, 1, peer, TAG_ACK);
        else
            port_sendrecv(p, &ack, &ack_in, 1, peer, peer, TAG_ACK);
        l->turn += w;
    }
}

/* Processor seconds of this process so far. */
static double spent(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* --cost: a row of what the batches have cost all ranks of the pairs, from what they have cost this one. */
static void show_cost(struct loops *l, double *cost, size_t bytes, int n_ranks, double volume)
{
    gather_sum(l, cost, l->o->batches, n_ranks);
    for (size_t b = 0; b < l->o->batches; b++)
        l->samples[b] = cost[b] / volume * 1e9;
    show(l, "processor", "s/GB", bytes, 0);
}

#define BATCH_SECONDS 0.05 /* at most so long, unless --iters says how many windows it has */

/* The discarded batch. Where it takes long, as windows both ways of some libraries over TCP do, later ones are shorter:
 * the windows of each, as rank 0 finds and tells the others. */
static size_t warm_up(struct loops *l, size_t bytes, int pairs, int peer, bool sends, bool receives)
{
    struct port *p = l->p;
    uint64_t iters = iterations(l->o, bytes, 100);
    windows(l, bytes, 1, peer, sends, receives); /* connects, if it is the first */
    double t = perf_now();
    windows(l, bytes, iters, peer, sends, receives);
    t = perf_now() - t;
    if (l->o->iters)
        return iters;
    if (t > BATCH_SECONDS)
        iters = (uint64_t)((double)iters * BATCH_SECONDS / t) + 1;
    if (p->rank > 0)
        port_recv(p, &iters, sizeof iters, 0, TAG_MARK);
    for (int r = 1; p->rank == 0 && r < 2 * pairs; r++)
        port_send(p, &iters, sizeof iters, r, TAG_MARK);
    return iters;
}

/* pairs: rank r and r + pairs; a rank beyond them stands by. */
static void loop_bandwidth(struct loops *l, int pairs, bool both_ways)
{
    double *cost = calloc(l->o->batches, sizeof *cost);
    struct port *p = l->p;
    bool first = p->rank < pairs;
    int peer = first ? p->rank + pairs : p->rank - pairs;
    if (!cost)
        port_fail(p, "out of memory", 0);
    for (size_t bytes = l->o->size_min; p->rank < 2 * pairs && bytes <= l->o->size_max; bytes = next_size(bytes)) {
        size_t iters = warm_up(l, bytes, pairs, peer, first || both_ways, !first || both_ways);
        double volume = (double)(bytes * perf_window(l->o, bytes) * iters) * pairs * (both_ways ? 2 : 1);
        char go = 0;
        exchange_read(l, 0);
        for (size_t b = 0; b < l->o->batches; b++) {
            /* Pairs start together: rank 0 waits for the other senders, then lets them go. */
            for (int r = 1; p->rank == 0 && r < pairs; r++)
                port_recv(p, &go, 1, r, TAG_MARK);
            for (int r = 1; p->rank == 0 && r < pairs; r++)
                port_send(p, &go, 1, r, TAG_MARK);
            if (first && p->rank > 0) {
                port_send(p, &go, 1, 0, TAG_MARK);
                port_recv(p, &go, 1, 0, TAG_MARK);
            }
            double t = perf_now();
            cost[b] = -spent();
            windows(l, bytes, iters, peer, first || both_ways, !first || both_ways);
            l->samples[b] = perf_now() - t;
            cost[b] += spent();
            exchange_read(l, b + 1);
            note(l, bytes);
        }
        if (first)
            gather_max(l, l->samples, l->o->batches, pairs);
        for (size_t b = 0; b < l->o->batches; b++)
            l->samples[b] = volume / l->samples[b] * 1e-6;
        show(l, NULL, "MB/s", bytes, 0);
        if (l->o->cost && bytes)
            show_cost(l, cost, bytes, 2 * pairs, volume);
    }
    free(cost);
}

#endif
