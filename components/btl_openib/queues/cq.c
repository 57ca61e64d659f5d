/* Completion queues: their length, and whether they have been polled to the end. */
#include <strata/sdk/account.h>
#include "device/device.h"
#include "queues/queue.h"

#define FIRST_CQE 256u
#define TRIED_CQE 16u /* a first length, to see whether the device can resize */

static struct ibv_cq *cq_make(struct ib_queue *q, uint32_t n)
{
    uint32_t most = (uint32_t)q->dev->attr.max_cqe;

    struct st_account_mark mark;

    q->cqe = n < most ? n : most;
    st_account_enter(q->dev->context, ST_ACCOUNT_HEAP, &mark);
    struct ibv_cq *cq = ibv_create_cq(q->dev->verbs, (int)q->cqe, (void *)(uintptr_t)q->priority, q->dev->channel, 0);
    st_account_leave(q->dev->context, &mark);
    return cq;
}

/* Some devices cannot resize a CQ, and say so when asked to: for these it is made as long as it may have to be. */
int ib_cq_open(struct ib_queue *q)
{
    uint32_t first = FIRST_CQE < (uint32_t)q->dev->attr.max_cqe ? FIRST_CQE : (uint32_t)q->dev->attr.max_cqe;

    q->cq = cq_make(q, TRIED_CQE);
    if (!q->cq)
        return STRATA_ERR_NOMEM;
    if (ibv_resize_cq(q->cq, (int)first) == 0) {
        q->cqe = first;
        return STRATA_OK;
    }
    (void)ibv_destroy_cq(q->cq);
    q->cq = cq_make(q, ib_cq_for_all(q));
    q->fixed = true;
    return q->cq ? STRATA_OK : STRATA_ERR_NOMEM;
}

int ib_cq_reserve(struct ib_queue *q, uint32_t n)
{
    uint32_t want = ib_doubled(q->cqe, q->cqe_used + n, ib_cq_most(q));

    if (want < q->cqe_used + n)
        return STRATA_ERR_NOMEM;
    if (want != q->cqe) {
        if (ibv_resize_cq(q->cq, (int)want) != 0)
            return STRATA_ERR_NOMEM;
        q->cqe = want;
    }
    q->cqe_used += n;
    return STRATA_OK;
}

void ib_cq_release(struct ib_queue *q, uint32_t n)
{
    q->cqe_used -= n;
}

/* A poll that returns fewer than IB_POLLED has emptied the CQ. Where a stream keeps it from that, as many polls as take
 * all entries have taken what was in it at first. */
bool ib_cqs_read(struct ib_queue q[])
{
    bool all = true;

    for (int i = 0; i < IB_PRIORITIES; i++) {
        q[i].read |= q[i].full == q[i].full_seen || q[i].full - q[i].full_begun > q[i].cqe / IB_POLLED;
        q[i].full_seen = q[i].full;
        all &= q[i].read;
    }
    for (int i = 0; all && i < IB_PRIORITIES; i++) {
        q[i].read = false;
        q[i].full_begun = q[i].full;
    }
    return all;
}
