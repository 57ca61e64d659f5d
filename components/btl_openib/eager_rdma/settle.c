/* Accounts for messages that a ring has brought: what is owed for their slots, and what the connection counts. */
#include "module.h"

void ib_ring_owes(struct ib_ring_in *r, uint32_t slots)
{
    struct ib_peer *p = r->peer;

    p->owed_slots = (uint8_t)(p->owed_slots + slots);
    if (p->owed_slots >= r->window)
        ib_owe(p);
}

void ib_ring_settle(struct ib_module *m, struct ib_ring_in *r)
{
    uint32_t n = r->taken;

    r->plan = 0;
    if (n == 0)
        return;
    r->taken = 0;
    r->arrivals += n;
    r->peer->q[IB_HIGH].received += n;
    m->poll.last = &r->peer->q[IB_HIGH];
    m->poll.until = m->poll.until > n ? m->poll.until - n : 1;
    ib_ring_owes(r, n);
}
