/* Messages of high priority pass those of low priority that are on their way, for as long as these have to be tried
 * again. The layer above tells their order by numbers of 16 bits, and one message may be a batch of 32 of its own
 * (pml_ob1): no more may pass than such numbers can tell apart. So while something of low priority is on its way the
 * credits for what follows are given out only up to MAY_PASS, and from there on when it has come. */
#include "openib.h"

#define MAY_PASS 128u

static void begin(struct ib_peer *p, uint32_t credits)
{
    struct ib_qp *high = &p->q[IB_HIGH];

    p->usual = false;
    high->credits = credits < MAY_PASS ? credits : MAY_PASS;
    p->passing = (struct ib_passing){.on = true,
                                     .left = MAY_PASS - high->credits,
                                     .withheld = credits - high->credits,
                                     .until = p->q[IB_LOW].posted};
}

void ib_passing_begin(struct ib_peer *p)
{
    if (!p->passing.on)
        begin(p, p->q[IB_HIGH].credits);
}

void ib_passing_credits(struct ib_peer *p, uint32_t n)
{
    uint32_t over = n > p->passing.left ? n - p->passing.left : 0;

    p->passing.left -= n - over;
    p->passing.withheld += over;
    p->q[IB_HIGH].credits += n - over;
}

void ib_passing_ended(struct ib_peer *p)
{
    const struct ib_qp *low = &p->q[IB_LOW];

    if ((int32_t)(low->done - p->passing.until) < 0)
        return;
    begin(p, p->q[IB_HIGH].credits + p->passing.withheld);
    if (low->done != low->posted)
        return;
    p->q[IB_HIGH].credits += p->passing.withheld;
    p->passing = (struct ib_passing){.on = false};
}

void ib_credits_drop(struct ib_peer *p)
{
    p->usual = false;
    p->passing = (struct ib_passing){.on = false};
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].credits = 0;
}
