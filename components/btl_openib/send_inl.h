/* What all ways of sending a message share: room and credits. */
#ifndef IB_SEND_INL_H
#define IB_SEND_INL_H

#include <string.h>
#include <strata/sdk/copy.h>
#include "openib.h"

static inline uint32_t room(const struct ib_qp *q)
{
    return q->depth - (q->posted - q->done);
}

/* What the receiver may be told along with any message. */
static inline void take_owed(struct ib_peer *p, struct ib_head *h)
{
    memcpy(h->credits, p->owed, sizeof h->credits);
    memset(p->owed, 0, sizeof p->owed);
}

static inline void give_back_owed(struct ib_peer *p, const struct ib_head *h)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->owed[i] = (uint16_t)(p->owed[i] + h->credits[i]);
}

/* Signalled: `what` is wanted back soon, though this peer may have nothing more to say. With immediate data when there
 * is a pointer to them. */
static inline int post_signalled(struct ib_module *m, struct ib_qp *q, struct ibv_sge *sge, int n, const uint32_t *imm,
                                 void *what, enum ib_sent_kind kind)
{
    struct ibv_send_wr wr = {.wr_id = ib_wr_id(q),
                             .sg_list = sge,
                             .num_sge = n,
                             .opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = imm ? *imm : 0};
    struct ibv_send_wr *bad;

    if (IB_UNLIKELY(ibv_post_send(q->qp, &wr, &bad) != 0))
        return STRATA_ERR_AGAIN;
    ib_posted(q, what, kind);
    if (q->priority == IB_LOW) {
        q->messages++;
        ib_expect_low(m);
    }
    return STRATA_OK;
}

static inline bool has_room(const struct ib_qp *q)
{
    return IB_LIKELY(q->credits > 0 && room(q) > IB_CONTROL_SENDS);
}

static inline void sent(struct ib_module *m, struct ib_qp *q, uint32_t len)
{
    q->credits--;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
}

static inline struct ib_qp *qp_for(const struct ib_module *m, struct ib_peer *p, uint32_t total)
{
    return &p->q[total <= m->spec[IB_HIGH].size ? IB_HIGH : IB_LOW];
}

#endif
