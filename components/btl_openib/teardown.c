/* Giving up connections that nobody uses: on request, and when there are more than max_connected_peers. Paper,
 * section 7.2
 * ("dynamic connection tear down"). Both sides finish what they have begun before either queue pair goes, so nothing is
 * lost; the next send connects again. States and messages: docs/design/btl_openib.md. */
#include "openib.h"

#define FORCE_AFTER 1000000000u /* ns for which a new connection waits for an old one to go */
#define FLUSH_NS                                                                                                       \
    200000000u /* in which a device has said of all work requests of a failed queue pair that they ended               \
                */

/* All of low priority has arrived at the peer, or come from there. What was sent by high priority needs no waiting: our
 * word comes behind it. */
static bool drained(const struct ib_peer *p)
{
    const struct ib_module *m = ib_module(p->ep.btl);

    if (p->q[IB_LOW].posted != p->q[IB_LOW].done)
        return false;
    for (const struct st_node *n = m->rdma_waiting.next; n != &m->rdma_waiting; n = n->next)
        if (ST_CONTAINER(n, struct ib_rdma, node)->peer == p)
            return false;
    return true;
}

/* All that the peer has sent by low priority has been taken out of the queue. Its word came by the other one, and
 * neither that queue found empty nor the peer's own completions say that nothing is on its way into it. */
static bool all_here(const struct ib_peer *p)
{
    return p->q[IB_LOW].received == p->last_low;
}

/* Our last word, which is signalled, has arrived. */
static bool finished(const struct ib_peer *p)
{
    return p->q[IB_HIGH].posted == p->q[IB_HIGH].done;
}

static void enter(struct ib_peer *p, enum ib_state state)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (p->state == IB_UP) {
        m->n_closing++;
        ib_attend(m);
        ib_credits_drop(p);
    }
    p->state = (uint8_t)state;
}

void ib_teardown_begin(struct ib_peer *p)
{
    if (p->state == IB_UP)
        enter(p, IB_DRAINING);
}

void ib_teardown_mend(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (p->mending)
        return;
    p->mending = true;
    p->ep.caps = m->btl.caps;
    m->n_closing++;
    ib_attend(m);
}

void ib_teardown_asked(struct ib_peer *p, uint32_t low)
{
    p->last_low = low;
    /* It had finished before it asked. If we have asked it, too, both know all they need. */
    if (p->state == IB_ASKED_TO_CLOSE)
        enter(p, IB_CLOSED);
    else if (p->state == IB_UP || p->state == IB_DRAINING)
        enter(p, IB_CONSENTING);
}

void ib_teardown_answered(struct ib_peer *p, uint32_t low)
{
    p->last_low = low;
    if (p->state == IB_ASKED_TO_CLOSE)
        enter(p, IB_CLOSED);
}

/* Receives of its own are flushed, so that their buffers come back; shared ones stay where they are. */
static bool receives_back(struct ib_peer *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    bool all = true;

    for (int i = 0; i < IB_PRIORITIES; i++) {
        if (p->q[i].receives && !p->flushing)
            (void)ibv_modify_qp(p->q[i].qp, &a, IBV_QP_STATE);
        all &= p->q[i].receives == 0;
    }
    p->flushing = true;
    return all;
}

static void closed(struct ib_module *m, struct ib_peer *p)
{
    ib_qps_destroy(p);
    ib_wire_up_end(p); /* a failed one may still be telling its peer */
    p->remade = p->state == IB_FAILED;
    p->flushing = p->mending = p->told = false;
    p->mine = p->theirs = 0;
    p->state = IB_IDLE;
    m->n_closing--;
    m->count.torn_down++;
}

static void step(struct ib_module *m, struct ib_peer *p, bool quiet)
{
    switch ((enum ib_state)p->state) {
    case IB_DRAINING:
        if (drained(p) && ib_send_control(p, IB_CONTROL_CLOSE) == STRATA_OK)
            enter(p, IB_ASKED_TO_CLOSE);
        break;
    case IB_CONSENTING:
        if (drained(p) && ib_send_control(p, IB_CONTROL_CLOSE_TOO) == STRATA_OK)
            enter(p, IB_CONSENTED);
        break;
    case IB_CONSENTED:
        if (finished(p))
            enter(p, IB_CLOSED);
        break;
    case IB_CLOSED: /* quiet: a device may acknowledge what came last after it has said that it came */
        if (quiet && all_here(p) && finished(p) && receives_back(p))
            closed(m, p);
        break;
    case IB_FAILED:
        if (p->mending && quiet && ib_now_ns() - p->failed_ns > FLUSH_NS && receives_back(p))
            closed(m, p);
        break;
    default:
        break;
    }
}

void ib_teardown_progress(struct ib_module *m, bool quiet)
{
    for (struct ib_peer *p = m->all; p && m->n_closing; p = p->next)
        step(m, p, quiet);
}

void ib_teardown_hurry(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (p->state != IB_CONSENTED)
        return;
    /* It connects anew, so it has our consent, and all that was sent before; only the device's word for that is
     * outstanding. */
    enter(p, IB_CLOSED);
    for (int i = 0; i < IB_PRIORITIES; i++)
        ib_sent_drop(&p->q[i], STRATA_OK);
    if (all_here(p) && receives_back(p)) /* else the peer asks again */
        closed(m, p);
}

/* ---- pressure ---- */

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
        if (p->state == IB_UP && !recently_used(p) && drained(p)) {
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
    return m->short_until && ib_now_ns() < m->short_until;
}

void ib_is_short_now(struct ib_module *m)
{
    bool again = ib_is_short(m);

    /* One has gone since, and it still gives none: the rest would go in vain, too, and might not come back. */
    m->short_in_vain = again && m->n_up < m->short_peers;
    if (!m->short_in_vain)
        m->short_peers = m->n_up;
    m->short_until = m->short_peers ? ib_now_ns() + SHORT_FOR : 0;
}

void ib_teardown_make_room(struct ib_module *m)
{
    if (m->n_closing == 0 && !m->short_in_vain)
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
    now = ib_now_ns();
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
