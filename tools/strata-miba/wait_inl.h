/* Polling a completion queue of an endpoint until something is there. */
#ifndef MIBA_WAIT_INL_H
#define MIBA_WAIT_INL_H

#include "endpoint.h"

/* NULL: the queue is polled. */
static inline struct event_queue *event_queue_of(struct endpoint *e, const struct ibv_cq *cq)
{
    for (unsigned i = 0; i < EVENT_QUEUES; i++)
        if (__builtin_expect(e->by_event[i].cq == cq, 0))
            return &e->by_event[i];
    return NULL;
}

/* After a turn without progress of a loop that polls `cq`. What came before a queue was armed made no event: it is
 * polled once more before the loop sleeps. */
static inline enum miba_status wait_turn(struct endpoint *e, const struct ibv_cq *cq, struct idle *w)
{
    struct event_queue *q = event_queue_of(e, cq);

    if (__builtin_expect(q != NULL, 0))
        return q->armed ? endpoint_sleep(e, q) : endpoint_arm(e, q);
    if (__builtin_expect(++w->turns % IDLE_TURNS == 0, 0))
        endpoint_look(e, w);
    return MIBA_OK;
}

/* One completion. e->over: there came none. */
static inline enum miba_status wait_one(struct endpoint *e, struct ibv_cq *cq, struct ibv_wc *wc)
{
    struct event_queue *q = event_queue_of(e, cq);
    struct idle w = {0};

    /* One message is in flight, and the queue was armed before: each completion has one event, and none comes between
     * the poll that takes it and the next arming. */
    if (__builtin_expect(q != NULL, 0)) {
        const enum miba_status status = endpoint_sleep(e, q);
        if (status || e->over)
            return status;
    }
    for (;;) {
        const int n = ibv_poll_cq(cq, 1, wc);
        if (n > 0 && wc->status != IBV_WC_SUCCESS)
            return endpoint_failed(e, wc);
        if (n > 0)
            return __builtin_expect(q != NULL, 0) && !q->armed ? endpoint_arm(e, q) : MIBA_OK;
        if (n < 0)
            return miba_fail(&e->m->why, MIBA_FAILED, "ibv_poll_cq: %d", n);
        const enum miba_status status = wait_turn(e, cq, &w);
        if (status || e->over)
            return status;
    }
}

#endif
