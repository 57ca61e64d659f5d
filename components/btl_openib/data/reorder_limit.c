/* Messages of high priority overtake those of low priority that are in flight, which may have to be sent again for
 * long. Clients number messages by 16 bits, and one may be a batch of 32: no more may overtake than such numbers can
 * tell apart. So while a message of low priority is in flight credits for high priority are given out up to
 * IB_MAY_PASS, and further ones when it has arrived. */
#include "data/credits.h"
#include "eager_rdma/eager.h"

static void reorder_set(struct ib_peer *p, uint32_t credits)
{
    struct ib_qp *high = &p->q[IB_HIGH];

    p->usual = false;
    high->credits = credits < IB_MAY_PASS ? credits : IB_MAY_PASS;
    p->reorder = (struct ib_reorder){.on = true,
                                     .left = IB_MAY_PASS - high->credits,
                                     .withheld = credits - high->credits,
                                     .until = p->q[IB_LOW].posted};
}

void ib_reorder_begin(struct ib_peer *p)
{
    if (p->reorder.on)
        return;
    reorder_set(p, p->q[IB_HIGH].credits);
    ib_ring_limit(p);
}

void ib_reorder_credits(struct ib_peer *p, uint32_t n)
{
    uint32_t over = n > p->reorder.left ? n - p->reorder.left : 0;

    p->reorder.left -= n - over;
    p->reorder.withheld += over;
    p->q[IB_HIGH].credits += n - over;
}

void ib_reorder_ended(struct ib_peer *p)
{
    const struct ib_qp *low = &p->q[IB_LOW];

    if ((int32_t)(low->done - p->reorder.until) < 0)
        return;
    reorder_set(p, p->q[IB_HIGH].credits + p->reorder.withheld);
    if (low->done != low->posted)
        return;
    p->q[IB_HIGH].credits += p->reorder.withheld;
    p->reorder = (struct ib_reorder){.on = false};
    ib_ring_limit(p);
}
