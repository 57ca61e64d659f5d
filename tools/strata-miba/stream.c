/* Streams: a window of messages in flight, as in section 5.2.1 of the paper: w are posted, and w/2 more whenever w/2
 * are complete. */
#include "config.h"
#include "pattern.h"

#include <string.h>
#include "post_inl.h"
#include "wait_inl.h"

#define POLLED 16

/* How far a stream is. */
struct progress {
    uint32_t posted, complete, arrived;
};

static enum miba_status post_some(struct endpoint *e, struct progress *p, unsigned n)
{
    const uint32_t flying = p->posted - p->complete, half = e->t.window / 2;
    const uint32_t least = half > e->t.signal_every - 1 ? half : e->t.signal_every - 1;

    if (p->posted == n || flying > least)
        return MIBA_OK;
    uint32_t count = e->t.window - flying;
    if (count > n - p->posted)
        count = n - p->posted;
    const int error = endpoint_post(e, count, p->posted + count == n);
    p->posted += count;
    return error ? miba_fail_verb(&e->m->why, error, "ibv_post_send", miba_op_name(e->t.op)) : MIBA_OK;
}

static enum miba_status reap(struct endpoint *e, struct progress *p, bool *some)
{
    struct ibv_wc wc[POLLED];
    const int k = ibv_poll_cq(e->scq, POLLED, wc);

    for (int i = 0; i < k; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            return endpoint_failed(e, &wc[i]);
        p->complete += (uint32_t)wc[i].wr_id;
    }
    *some |= k > 0;
    return k < 0 ? miba_fail(&e->m->why, MIBA_FAILED, "ibv_poll_cq: %d", k) : MIBA_OK;
}

static enum miba_status arrivals(struct endpoint *e, struct progress *p, bool *some)
{
    struct ibv_wc wc[POLLED];
    const int k = ibv_poll_cq(e->rcq, POLLED, wc);

    for (int i = 0; i < k; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            return endpoint_failed(e, &wc[i]);
        e->received++;
        p->arrived++;
        const int error = endpoint_repost(e, &wc[i]);
        if (error)
            return miba_fail(&e->m->why, MIBA_FAILED, "ibv_post_recv: %s", strerror(error));
    }
    *some |= k > 0;
    return k < 0 ? miba_fail(&e->m->why, MIBA_FAILED, "ibv_poll_cq: %d", k) : MIBA_OK;
}

static void compute(uint32_t ns)
{
    const uint64_t end = miba_now() + ns;

    while (miba_now() < end)
        ;
}

enum miba_status stream(struct endpoint *e, unsigned send, unsigned expect, uint64_t *ns, uint32_t *arrived)
{
    struct progress p = {0};
    struct idle w = {0};
    const uint64_t begin = miba_now();
    enum miba_status status = MIBA_OK;

    /* Where messages get lost nobody waits for them while it sends itself. */
    const unsigned awaited = send && e->t.transport != RC ? 0 : expect;
    while (p.complete < send || p.arrived < awaited) {
        const uint32_t before = p.posted;
        bool some = false;
        if (send)
            status = post_some(e, &p, send);
        if (e->t.compute_ns && p.posted != before) {
            compute(e->t.compute_ns);
            e->computed_ns += e->t.compute_ns;
        }
        if (!status && send)
            status = reap(e, &p, &some);
        if (!status && expect)
            status = arrivals(e, &p, &some);
        if (!status && !some)
            status = wait_turn(e, p.complete < send ? e->scq : e->rcq, &w);
        else
            w = (struct idle){0};
        if (status || e->over)
            break;
    }
    *ns = miba_now() - begin;
    /* The leading side has ended: what has not been polled has arrived, too. */
    for (bool some = true; some && !status && expect && e->over == OVER_STIRRED;) {
        some = false;
        status = arrivals(e, &p, &some);
    }
    *arrived = p.arrived;
    return status;
}
