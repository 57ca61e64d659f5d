/* Receive queues per peer, and consumed buffers. */
#include "peer/peer.h"
#include "queues/queue.h"

static int rq_post(struct ib_qp *q, struct ib_buffer *b)
{
    struct ibv_recv_wr *bad;

    b->wr.next = NULL;
    if (ibv_post_recv(q->qp, &b->wr, &bad) != 0)
        return STRATA_ERR_NOMEM;
    b->peer = q->peer;
    q->receives++;
    return STRATA_OK;
}

int ib_rq_fill(struct ib_queue *queue, struct ib_qp *q)
{
    for (uint32_t i = 0; i < ib_own_receives(queue->spec); i++) {
        struct ib_buffer *b = ib_buffer_get(&queue->receives);
        if (!b)
            return STRATA_ERR_NOMEM;
        if (rq_post(q, b) != STRATA_OK) {
            ib_buffer_put(&queue->receives, b);
            return STRATA_ERR_NOMEM;
        }
    }
    return STRATA_OK;
}

void ib_rq_lost(struct ib_queue *queue, struct ib_qp *q, struct ib_buffer *b)
{
    if (q)
        q->receives--;
    b->peer = NULL;
    ib_buffer_put(&queue->receives, b);
}

void ib_rq_repost(struct ib_queue *queue, struct ib_buffer *b)
{
    struct ib_qp *q;

    if (queue->srq) {
        ib_srq_fill(queue);
        return;
    }
    queue->again = NULL;
    queue->n_again = 0;
    q = &b->peer->q[queue->priority];
    q->receives--;
    if (rq_post(q, b) != STRATA_OK) {
        b->peer = NULL;
        ib_buffer_put(&queue->receives, b);
    }
}
