/* Batches of sends: several of the layer above are handed to the device by one call, with one doorbell, and for a
 * device in software one system call. */
#include "module.h"

#define TRIES 64 /* a send queue that has room may be refused for a moment, for want of memory */

bool ib_batch_add(struct ib_module *m, struct ib_qp *q, const struct ibv_send_wr *wr)
{
    struct ib_batch *l = &m->batch;
    uint32_t i;

    if (!l->on)
        return false;
    if (l->n == IB_BATCHED || (l->n && l->q != q))
        ib_batch_post(m);
    i = l->n++;
    l->q = q;
    l->wr[i] = *wr;
    l->wr[i].sg_list = l->sge[i];
    for (int k = 0; k < wr->num_sge; k++)
        l->sge[i][k] = wr->sg_list[k];
    if (i)
        l->wr[i - 1].next = &l->wr[i];
    return true;
}

void ib_batch_post(struct ib_module *m)
{
    struct ib_batch *l = &m->batch;
    struct ibv_send_wr *first = l->wr, *bad;

    if (l->n == 0)
        return;
    for (int i = 0; first && i < TRIES; i++)
        first = ibv_post_send(l->q->qp, first, &bad) == 0 ? NULL : bad;
    if (first) /* they count as sent, so nothing less will do */
        ib_peer_broken(l->q->peer, "the device takes no more requests");
    if (l->n > 1)
        m->count.listed += l->n;
    l->n = 0;
}

void ib_batch_drop(struct ib_module *m, const struct ib_qp *q)
{
    if (m->batch.q == q)
        m->batch.n = 0;
}
