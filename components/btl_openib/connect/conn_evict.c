/* Which connections are closed, and when: where there are more than max_connected_peers, or more than the device has
 * queue pairs for. How they are closed: conn_close.c. */
#include <strata/sdk/clock.h>
#include "module.h"

#define FORCE_AFTER 1000000000u /* ns for which a new connection waits for an old one to go */

/* Whether the connection was used since the last call. */
static bool evict_recently_used(struct ib_peer *p)
{
    uint32_t sum = 0;
    bool used;

    if (p->q[IB_HIGH].ring)
        ib_ring_settle(ib_module_of(p), p->q[IB_HIGH].ring);
    for (int i = 0; i < IB_PRIORITIES; i++)
        sum += p->q[i].posted + p->q[i].received;
    used = sum != p->seen;
    p->seen = sum;
    return used;
}

/* Closes the first connection that was not used since the hand came by last. Where all were, that would be any of
 * them: not the one from which the last message came, if there is another. */
static void evict_clock(struct ib_module *m)
{
    const struct ib_peer *last = m->poll.last ? m->poll.last->peer : NULL;
    struct ib_peer *spared = NULL;

    for (uint32_t i = 0; i < 2 * m->peers.n; i++) {
        struct ib_peer *p = m->evict.hand ? m->evict.hand : m->peers.all;
        m->evict.hand = p->next;
        if (p->state != IB_UP || evict_recently_used(p) || !ib_drained(p))
            continue;
        if (p != last) {
            ib_close_begin(p);
            return;
        }
        spared = p;
    }
    if (spared)
        ib_close_begin(spared);
}

/* Our own requests may use two thirds of the room: the rest is for those who ask us. */
static uint32_t evict_asked_of(uint32_t room)
{
    return room > 2 ? (room - 1) * 2 / 3 : 1;
}

/* Connections that are kept; 0: any number. The device may have too few queue pairs for all of the job, or too short
 * CQs. */
static uint32_t evict_most_peers(const struct ib_module *m)
{
    uint32_t most = (uint32_t)m->dev.par->max_connected_peers,
             pairs = ((uint32_t)m->dev.attr.max_qp - 1) / IB_PRIORITIES;
    uint32_t room = pairs < m->evict.cq_peers ? pairs : m->evict.cq_peers;

    if (m->rte->size > 0 && room < (uint32_t)m->rte->size - 1) {
        uint32_t fit = evict_asked_of(room); /* with the few more that are accepted */
        most = most == 0 || most > fit ? fit : most;
    }
    return most;
}

/* ---- a device that gives fewer queue pairs than its limit, because other processes have them ---- */

#define SHORT_FOR 1000000000u /* ns since it gave none, then more are tried for again */

bool ib_evict_is_short(const struct ib_module *m)
{
    return m->evict.short_until && st_now_ns() < m->evict.short_until;
}

void ib_evict_short(struct ib_module *m)
{
    bool again = ib_evict_is_short(m);

    /* One has gone since, and it still gives none: the rest would go in vain, too, and might not come back. */
    m->evict.short_in_vain = again && m->qps.n_peers < m->evict.short_peers;
    if (!m->evict.short_in_vain)
        m->evict.short_peers = m->qps.n_peers;
    m->evict.short_until = m->evict.short_peers ? st_now_ns() + SHORT_FOR : 0;
}

/* One at a time, as long as their peers answer. */
void ib_evict_one(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    if (m->evict.short_in_vain || (m->conns.n_closing != 0 && now - m->evict.room_ns < FORCE_AFTER))
        return;
    m->evict.room_ns = now;
    evict_clock(m);
}

static uint32_t evict_asked_now(const struct ib_module *m)
{
    uint32_t asked = 0;

    for (const struct st_node *n = m->conns.pending.next; n != &m->conns.pending; n = n->next)
        asked += ST_CONTAINER(n, struct ib_wire_up, node)->peer->state == IB_ASKING;
    return asked;
}

bool ib_evict_asks_too_many(const struct ib_module *m)
{
    return ib_evict_is_short(m) && evict_asked_now(m) > evict_asked_of(m->evict.short_peers);
}

/* Whether another queue pair is worth trying; else an idle connection is closed. */
static bool evict_in_shortage(struct ib_module *m)
{
    if (!ib_evict_is_short(m) || m->qps.n_peers < m->evict.short_peers || m->evict.short_in_vain)
        return true;
    ib_evict_one(m);
    return false;
}

static bool evict_below_most(struct ib_module *m, struct ib_peer *p)
{
    uint32_t most = evict_most_peers(m);
    uint64_t now;

    if (most == 0 || m->qps.n_peers < most)
        return true;
    if (m->qps.n_peers - m->conns.n_closing >= most)
        evict_clock(m);
    now = st_now_ns();
    if (p->waits_since == 0)
        p->waits_since = now;
    if (now - p->waits_since < FORCE_AFTER)
        return false;
    p->waits_since = 0;
    m->count.forced++;
    return true;
}

bool ib_evict_for_request(struct ib_module *m, struct ib_peer *p)
{
    uint32_t most = evict_most_peers(m);

    return evict_in_shortage(m) && (most == 0 || m->qps.n_peers < ib_with_accepted(most) || evict_below_most(m, p));
}

/* Our own requests may not use all room: no request of others could be answered. */
bool ib_evict_for_connection(struct ib_module *m, struct ib_peer *p)
{
    return evict_in_shortage(m) &&
           (!ib_evict_is_short(m) || evict_asked_now(m) < evict_asked_of(m->evict.short_peers)) &&
           evict_below_most(m, p);
}
