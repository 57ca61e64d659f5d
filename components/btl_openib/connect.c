/* Connections on the first send: the states ASKING, ANSWERED and UP of docs/design/btl_openib.md. Requests and replies
 * carry the numbers of both queue pairs. Whoever waits for an answer sends again; who hears twice answers twice. Two
 * that ask each other at the same time take each other's request for the answer, so that one pair results. */
#include "openib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_WAIT 1000000000u /* ns between two of the same */

static void say(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w, enum ib_conn_type type, const char *why)
{
    struct ib_conn c = {.version = IB_WIRE_VERSION,
                        .type = (uint8_t)type,
                        .mtu = (uint8_t)m->mtu,
                        .rd_atomic = (uint8_t)(m->attr.max_qp_rd_atom < 16 ? m->attr.max_qp_rd_atom : 16),
                        .rail = (uint8_t)m->index,
                        .key = w->card.key,
                        .from = m->rte->rank,
                        .to = p->ep.rank,
                        .mine = p->mine,
                        .yours = p->theirs};

    for (int i = 0; i < IB_PRIORITIES; i++) {
        if (p->q[i].qp)
            c.qpn[i] = c.psn[i] = p->q[i].qp->qp_num;
        c.psn[i] &= 0xffffffu;
        c.credits[i] = m->spec[i].credits;
    }
    if (why)
        snprintf(c.why, sizeof c.why, "%s", why);
    /* What cannot be sent now counts as lost. */
    (void)ib_datagram_send(m, w, &c);
}

static int begin(struct ib_peer *p, enum ib_state state)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_wire_up *w = calloc(1, sizeof *w);
    char why[256] = "";
    uint64_t now = ib_now_ns();
    int rc;

    if (!w)
        return STRATA_ERR_NOMEM;
    rc = ib_card_fetch(m, p->ep.rank, &w->card, why, sizeof why);
    if (rc != STRATA_OK) {
        st_log(m->btl.context, ST_LOG_ERROR, "btl_openib", "%s", why);
        free(w);
        return rc;
    }
    rc = ib_qps_make(p);
    if (rc != STRATA_OK) {
        free(w);
        return rc;
    }
    w->peer = p;
    w->wait = (uint64_t)m->par->connect_retry_ms * 1000000u;
    w->again_at = now + w->wait;
    w->give_up_at = now + (uint64_t)m->par->connect_timeout_ms * 1000000u;
    p->up = w;
    p->mine = p->q[IB_HIGH].qp->qp_num ^ (uint32_t)now; /* differs from that of any earlier attempt */
    p->theirs = 0;
    p->state = (uint8_t)state;
    st_list_append(&m->wiring, &w->node);
    ib_attend(m);
    return STRATA_OK;
}

int ib_wire_up_begin(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);
    int rc = begin(p, IB_ASKING);

    if (rc != STRATA_OK)
        return rc;
    m->count.requests++;
    say(m, p, p->up, IB_CONN_REQUEST, NULL);
    return STRATA_OK;
}

void ib_wire_up_end(struct ib_peer *p)
{
    struct ib_wire_up *w = p->up;

    if (!w)
        return;
    st_list_remove(&w->node);
    if (w->ah)
        (void)ibv_destroy_ah(w->ah);
    free(w);
    p->up = NULL;
}

static void is_up(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].credits = p->up->credits[i];
    p->state = IB_UP;
    m->count.connected++;
    ib_wire_up_end(p);
}

void ib_wire_up_heard(struct ib_peer *p)
{
    if (p->state == IB_ANSWERED)
        is_up(p);
}

static void connect_to(struct ib_peer *p, const struct ib_conn *c)
{
    p->theirs = c->mine;
    if (ib_qps_connect(p, c) != STRATA_OK)
        ib_peer_broken(p, "the queue pairs cannot be connected");
    else
        p->state = IB_ANSWERED;
}

static void requested(struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    if (p->state == IB_CONSENTED && p->theirs != c->mine)
        (void)ib_teardown_hurry(p);
    if (p->state == IB_IDLE && (!ib_room_for_request(m, p) || begin(p, IB_ASKING) != STRATA_OK))
        return; /* asked again later: there may be room then */
    if (p->state == IB_ASKING)
        connect_to(p, c);
    else if (p->state == IB_ANSWERED && p->theirs == c->mine)
        m->count.repeats++;
    if (p->state == IB_ANSWERED && p->theirs == c->mine) {
        m->count.replies++;
        say(m, p, p->up, IB_CONN_REPLY, NULL);
    }
}

/* Our READY was lost, and the peer asks again by its reply; what we knew of it has been freed. */
static void ready_again(struct ib_module *m, struct ib_peer *p)
{
    struct ib_wire_up w = {.ah = NULL};

    m->count.repeats++;
    if (ib_card_fetch(m, p->ep.rank, &w.card, NULL, 0) != STRATA_OK)
        return;
    say(m, p, &w, IB_CONN_READY, NULL);
    if (w.ah)
        (void)ibv_destroy_ah(w.ah);
}

static void replied(struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    if (p->state == IB_ASKING)
        connect_to(p, c);
    if (p->state == IB_ANSWERED && p->theirs == c->mine) {
        say(m, p, p->up, IB_CONN_READY, NULL);
        is_up(p);
    } else if (p->state == IB_UP && p->theirs == c->mine) {
        ready_again(m, p);
    }
}

void ib_wire_up_take(struct ib_module *m, const struct ib_conn *c)
{
    struct ib_peer *p;

    /* Random bytes, another job's, another version's: whoever has not read our card does not know the key. */
    if (c->version != IB_WIRE_VERSION || c->key != m->card.key || c->to != m->rte->rank || c->from < 0 ||
        (m->rte->size > 0 && c->from >= m->rte->size) || c->from == m->rte->rank || m->closing) {
        m->count.refused++;
        return;
    }
    p = ib_peer_get(m, c->from);
    if (!p)
        return;
    if (c->type == IB_CONN_REQUEST) {
        requested(m, p, c);
        return;
    }
    if (c->yours != p->mine || p->mine == 0) {
        m->count.refused++; /* of an attempt that is over */
        return;
    }
    switch (c->type) {
    case IB_CONN_REPLY:
        replied(m, p, c);
        break;
    case IB_CONN_READY:
        if (p->state == IB_ANSWERED)
            is_up(p);
        break;
    default:
        m->count.refused++;
    }
}

void ib_wire_up_timers(struct ib_module *m)
{
    uint64_t now = ib_now_ns();

    for (struct st_node *n = m->wiring.next, *next; n != &m->wiring; n = next) {
        struct ib_wire_up *w = ST_CONTAINER(n, struct ib_wire_up, node);
        struct ib_peer *p = w->peer;
        next = n->next;
        if (now < w->again_at || p->error)
            continue;
        if (now >= w->give_up_at) {
            ib_peer_broken(p, "it does not answer requests for a connection");
            continue;
        }
        m->count.repeats++;
        say(m, p, w, p->state == IB_ASKING ? IB_CONN_REQUEST : IB_CONN_REPLY, NULL);
        w->wait = 2 * w->wait < LONGEST_WAIT ? 2 * w->wait : LONGEST_WAIT;
        w->again_at = now + w->wait;
    }
}
