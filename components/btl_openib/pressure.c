/* Which connections are given up, and when: where there are more than max_connected_peers, or more than the device has
 * queue pairs for. How they are: teardown.c. */
#include "openib.h"

#define FORCE_AFTER 1000000000u /* ns for which a new connection waits for an old one to go */

/* Used since the last look? */
static bool recently_used(struct ib_peer *p)
{
    uint32_t sum = 0;
    bool used;

    for (int i = 0; i < IB_PRIORITIES; i++)
        sum += p->q[i].posted + p->q[i].received;
    used = sum != p->seen;
    p->seen = sum;
    return used;
}

/* The clock's way to the least recently used: who was not used since the hand came by last. */
static void close_one(struct ib_module *m)
{
    for (uint32_t i = 0; i < 2 * m->n_peers; i++) {
        struct ib_peer *p = m->hand ? m->hand : m->all;
        m->hand = p->next;
        if (p->state == IB_UP && !recently_used(p) && ib_drained(p)) {
            ib_teardown_begin(p);
            return;
        }
    }
}

/* Who is asked cannot choose: a few more than the most are taken. */
static uint64_t with_askers(uint64_t most)
{
    return most ? most + most / 2 + 1 : 0;
}

uint64_t ib_kept_peers(const struct ib_module *m)
{
    return with_askers((uint64_t)m->par->max_connected_peers);
}

/* Of so many connections, those that we may ask for: the rest is for those who ask us. */
static uint32_t asked_of(uint32_t room)
{
    return room > 2 ? (room - 1) * 2 / 3 : 1;
}

/* Connections that are kept; 0: any number. A device may have too few queue pairs for all of the job, or too short
 * queues of completions. */
static uint32_t most_peers(const struct ib_module *m)
{
    uint32_t most = (uint32_t)m->par->max_connected_peers, pairs = ((uint32_t)m->attr.max_qp - 1) / IB_PRIORITIES;
    uint32_t room = pairs < m->cq_peers ? pairs : m->cq_peers;

    if (m->rte->size > 0 && room < (uint32_t)m->rte->size - 1) {
        uint32_t fit = asked_of(room); /* with those few more that are taken when asked */
        most = most == 0 || most > fit ? fit : most;
    }
    return most;
}

/* ---- a device that gives fewer queue pairs than it says, because others have them ---- */

#define SHORT_FOR 1000000000u /* ns since it gave none, then more are tried for again */

bool ib_is_short(const struct ib_module *m)
{
    return m->short_until && st_now_ns() < m->short_until;
}

void ib_is_short_now(struct ib_module *m)
{
    bool again = ib_is_short(m);

    /* One has gone since, and it still gives none: the rest would go in vain, too, and might not come back. */
    m->short_in_vain = again && m->n_up < m->short_peers;
    if (!m->short_in_vain)
        m->short_peers = m->n_up;
    m->short_until = m->short_peers ? st_now_ns() + SHORT_FOR : 0;
}

/* One at a time, as long as those that were asked answer. */
void ib_teardown_make_room(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    if (m->short_in_vain || (m->n_closing != 0 && now - m->room_ns < FORCE_AFTER))
        return;
    m->room_ns = now;
    close_one(m);
}

static uint32_t asked_now(const struct ib_module *m)
{
    uint32_t asked = 0;

    for (const struct st_node *n = m->wiring.next; n != &m->wiring; n = n->next)
        asked += ST_CONTAINER(n, struct ib_wire_up, node)->peer->state == IB_ASKING;
    return asked;
}

bool ib_asks_too_many(const struct ib_module *m)
{
    return ib_is_short(m) && asked_now(m) > asked_of(m->short_peers);
}

/* Whether it is worth trying now; else one of those that are not used goes. */
static bool room_in_shortage(struct ib_module *m)
{
    if (!ib_is_short(m) || m->n_up < m->short_peers || m->short_in_vain)
        return true;
    ib_teardown_make_room(m);
    return false;
}

static bool room_below_most(struct ib_module *m, struct ib_peer *p)
{
    uint32_t most = most_peers(m);
    uint64_t now;

    if (most == 0 || m->n_up < most)
        return true;
    if (m->n_up - m->n_closing >= most)
        close_one(m);
    now = st_now_ns();
    if (p->waits_since == 0)
        p->waits_since = now;
    if (now - p->waits_since < FORCE_AFTER)
        return false;
    p->waits_since = 0;
    m->count.forced++;
    return true;
}

bool ib_room_for_request(struct ib_module *m, struct ib_peer *p)
{
    uint32_t most = most_peers(m);

    return room_in_shortage(m) && (most == 0 || m->n_up < with_askers(most) || room_below_most(m, p));
}

/* Those that are asked for may not have all that there is: nobody could be answered. */
bool ib_room_for_connection(struct ib_module *m, struct ib_peer *p)
{
    return room_in_shortage(m) && (!ib_is_short(m) || asked_now(m) < asked_of(m->short_peers)) && room_below_most(m, p);
}
