/* Matching with other receives posted or other messages unexpected. */
#ifndef PERF_LOOPS_MATCH_H
#define PERF_LOOPS_MATCH_H

#include "loops_pair.h"

enum { MATCH_BYTES = 8 };

struct queued {
    size_t depth;
    char *slots; /* depth * MATCH_BYTES */
    port_req *reqs;
};

/* Rank 0 first, then rank 1, so that never both have full queues towards each other. */
static void send_others(struct loops *l, size_t depth, int peer)
{
    struct port *p = l->p;
    char mark = 0;
    for (int turn = 0; turn < 2; turn++) {
        if (turn == p->rank) {
            for (size_t i = 0; i < depth; i++)
                port_send(p, l->sbuf, MATCH_BYTES, peer, TAG_OTHER + (int)i);
            port_send(p, &mark, 1, peer, TAG_MARK);
        } else {
            port_recv(p, &mark, 1, peer, TAG_MARK);
        }
    }
}

static void queue_others(struct loops *l, struct queued *q, bool posted, int peer)
{
    if (!posted)
        send_others(l, q->depth, peer);
    else
        for (size_t i = 0; i < q->depth; i++)
            port_irecv(l->p, q->slots + i * MATCH_BYTES, MATCH_BYTES, peer, TAG_OTHER + (int)i, &q->reqs[i]);
}

static void drain_others(struct loops *l, struct queued *q, bool posted, int peer)
{
    if (posted) {
        send_others(l, q->depth, peer);
        port_waitall(l->p, q->depth, q->reqs);
    } else {
        for (size_t i = 0; i < q->depth; i++)
            port_recv(l->p, q->slots + i * MATCH_BYTES, MATCH_BYTES, peer, TAG_OTHER + (int)i);
    }
}

/* One kind at one depth; returns the median on rank 0. Both ranks have the queue, so an exchange is one-way time. */
static double match_at(struct loops *l, bool posted, size_t depth)
{
    struct port *p = l->p;
    int peer = 1 - p->rank;
    size_t iters = l->o->iters ? l->o->iters : 500;
    struct queued q = {depth, malloc(depth * MATCH_BYTES), malloc(depth * sizeof(port_req))};
    char mark = 0;
    if (!q.slots || !q.reqs)
        port_fail(p, "out of memory", 0);
    queue_others(l, &q, posted, peer);
    port_sendrecv(p, &mark, &mark + 0, 0, peer, peer, TAG_MARK);
    round_trips(l, MATCH_BYTES, iters);
    exchange_read(l, 0);
    for (size_t b = 0; b < l->o->batches; b++) {
        l->samples[b] = round_trips(l, MATCH_BYTES, iters) / (double)iters / 2 * 1e6;
        exchange_read(l, b + 1);
        note(l, MATCH_BYTES);
    }
    drain_others(l, &q, posted, peer);
    show(l, posted ? "posted" : "unexpected", "us", MATCH_BYTES, depth);
    free(q.slots);
    free(q.reqs);
    return perf_summarise(l->samples, l->o->batches).median;
}

static void loop_match(struct loops *l)
{
    for (int posted = 1; l->p->rank < 2 && posted >= 0; posted--) {
        const char *kind = posted ? "posted_ratio" : "unexpected_ratio";
        double shallow = match_at(l, posted, 1), deep = match_at(l, posted, l->o->depth);
        if (l->p->rank != 0)
            continue;
        perf_report_set(l->report, kind, json_real(deep / shallow));
        if (!l->o->json)
            printf("%-12s %10zu to 1 %9.2fx\n", posted ? "posted" : "unexpected", l->o->depth, deep / shallow);
    }
}

#endif
