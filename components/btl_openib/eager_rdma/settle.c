/* Accounts for messages that a ring has brought: what is owed for their slots, and what the connection counts. */
#include "module.h"

void ib_ring_owes(struct ib_ring_in *r, uint32_t slots)
{
    struct ib_peer *p = r->peer;
    uint32_t owed = p->owed_slots + slots;

    p->owed_slots = (uint8_t)owed;
    if (owed < r->window)
        return;
    if (ST_UNLIKELY(owed > r->order.n))
        ib_peer_broken(p, IB_RING_OVERRUN);
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
