/* Connections on the first send: the states ASKING, ANSWERED and UP of docs/design/openib-connections.md. Requests and
 * replies carry the numbers of both queue pairs. The side that waits for an answer repeats its message; a message that
 * comes twice is answered twice. Two that ask each other at the same time take each other's request for the answer, so
 * that one pair results. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include "module.h"

/* No queue pair can be made. An idle connection may go for it; it is an error when that takes as long as a peer may
 * take to answer, and at once where our parameters are the reason. */
static void conn_qp_shortage(struct ib_peer *p, uint64_t now)
{
    struct ib_module *m = ib_module_of(p);
    bool ours = p->refusal == EINVAL || p->refusal == EOPNOTSUPP || p->refusal == ENOSYS;

    ib_evict_short(m);
    if (p->short_since == 0)
        p->short_since = now;
    if (ours || now - p->short_since >= ib_conn_give_up_after(m)) {
        snprintf(m->conns.refusal, sizeof m->conns.refusal, "no queue pair can be made for it: %s",
                 strerror(p->refusal));
        ib_peer_broken(p, m->conns.refusal);
    }
    if (!ours)
        ib_evict_one(m);
}

static int conn_prepare(struct ib_peer *p, enum ib_state state)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_card card;
    char why[256] = "";
    int rc;

    /* The request tells the peer our address, and the device's event may not have been read yet. */
    (void)ib_address_refresh(m);
    rc = ib_card_fetch(m, p->ep.rank, &card, why, sizeof why);
    if (rc != STRATA_OK) {
        ib_card_misfit(m, p->ep.rank, &card, why);
        return rc;
    }
    rc = ib_conn_make_qps(p);
    if (rc != STRATA_OK) {
        conn_qp_shortage(p, st_now_ns());
        return rc;
    }
    p->short_since = p->waits_since = 0;
    ib_wire_up_end(p); /* FAILED or MOVED may still be repeated */
    if (!ib_wire_up_new(m, p, &card, ib_conn_give_up_after(m))) {
        ib_conn_free_qps(p, false);
        return STRATA_ERR_NOMEM;
    }
    p->mine = ib_conn_next_id(m);
    p->theirs = 0;
    p->state = (uint8_t)state;
    return STRATA_OK;
}

int ib_conn_begin(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);
    int rc = m->dev.dead ? STRATA_ERR_UNREACHABLE : conn_prepare(p, IB_ASKING);

    if (rc != STRATA_OK)
        return rc;
    p->up->began = st_now_ns();
    m->count.requests++;
    ib_conn_send_state(m, p, p->up);
    return STRATA_OK;
}

/* The path to the peer; false: the method of connecting knows none any more, and nothing was done. */
static bool conn_path(struct ib_module *m, struct ib_peer *p, struct ibv_ah_attr *path)
{
    const struct ib_wire_up *w = p->up;

    *path = ib_device_path(&m->dev, w->card.gid, w->card.lid);
    return !w->method->path || w->method->path(m, p, path) == STRATA_OK;
}

static void conn_connect(struct ib_peer *p, const struct ib_conn *c)
{
    struct ibv_ah_attr path;

    if (!conn_path(ib_module_of(p), p, &path))
        return;
    p->theirs = p->latest = c->mine;
    memcpy(p->up->credits, c->credits, sizeof p->up->credits);
    if (ib_qps_connect(p, c, &path) != STRATA_OK)
        ib_peer_broken(p, "the queue pairs cannot be connected");
    else
        p->state = IB_ANSWERED;
}

/* A message of an attempt that is over, which was in flight for long. The peer has told us the id of every attempt that
 * came to anything. */
static bool conn_is_late(const struct ib_peer *p, const struct ib_conn *c)
{
    return c->mine == 0 || ((int32_t)(c->mine - p->latest) <= 0 && c->mine != p->theirs);
}

/* The peer gets messages by this method from now on. */
static void conn_turn_to(const struct ib_method *method, struct ib_module *m, struct ib_peer *p)
{
    struct ib_wire_up *w = p->up;

    if (w->method == method)
        return;
    ib_wire_up_release(w);
    if (w->method->disconnected)
        w->method->disconnected(m, p);
    w->method = method;
}

/* A message of an attempt that is over, by whatever method it comes. */
static bool conn_is_stale(const struct ib_peer *p, const struct ib_conn *c)
{
    return c->type == IB_CONN_REQUEST ? conn_is_late(p, c) : c->yours != p->mine;
}

/* Whether a message by another method than ours counts. Datagrams and frames may come in any order, and copies do no
 * harm: we go on by the method that works. An identifier of librdmacm is part of its connection: the one that it has
 * answered stays its own while it exists. Else it may be given up for sockets, never taken up beside them. */
static bool conn_method_fits(const struct ib_method *method, struct ib_module *m, struct ib_peer *p,
                             const struct ib_conn *c)
{
    const struct ib_method *now = p->up ? p->up->method : method;

    if (now == method || c->type > IB_CONN_READY || ib_is_closing(p->state) || conn_is_stale(p, c))
        return true;
    if (method == &ib_method_rdmacm ||
        (p->state == IB_ANSWERED && c->type == IB_CONN_REQUEST && now->holds && now->holds(m, p)))
        return false;
    conn_turn_to(method, m, p);
    return true;
}

/* Refuses a request for want of queue pairs. Both sides hold queue pairs for their own requests, so that all could wait
 * for each other when devices have no more. Nothing is kept of this request and it is never taken up later, so that the
 * peer may give its queue pairs back. librdmacm would have to end its connection for that. */
static void conn_turn_away(const struct ib_method *method, struct ib_module *m, struct ib_peer *p,
                           const struct ib_conn *c)
{
    if (method == &ib_method_rdmacm)
        return;
    p->turned_away = p->latest = p->theirs = c->mine;
    ib_conn_send_once(method, m, p, IB_CONN_BUSY);
    p->theirs = 0;
}

/* The peer has no room. If we ask too many peers, this one gives its queue pairs back, and the next send asks again;
 * else it is asked again soon under another id. */
static void conn_got_busy(struct ib_module *m, struct ib_peer *p)
{
    if (p->state != IB_ASKING)
        return;
    if (!ib_evict_asks_too_many(m)) {
        p->mine = ib_conn_next_id(m);
        p->up->repeats = 0; /* it was answered */
        p->up->wait = (uint64_t)m->dev.par->connect_retry_ms * 1000000u;
        p->up->again_at = st_now_ns() + p->up->wait;
        return;
    }
    ib_conn_free_qps(p, false);
    ib_wire_up_end(p);
    p->mine = p->theirs = 0;
    p->state = IB_IDLE;
}

static void conn_got_request(const struct ib_method *method, struct ib_module *m, struct ib_peer *p,
                             const struct ib_conn *c)
{
    if (p->state == IB_IDLE && c->mine && c->mine == p->turned_away && c->mine == p->latest) { /* our BUSY was lost */
        conn_turn_away(method, m, p, c);
        return;
    }
    if (conn_is_late(p, c)) {
        m->count.refused++;
        return;
    }
    /* The peer connects anew, so the connection has failed for it, and for us. Messages sent by it take another path,
     * and the layer above lets us connect again. */
    if ((p->state == IB_UP || p->state == IB_ANSWERED) && p->theirs != c->mine)
        ib_peer_broken(p, "the peer has given the connection up and connects anew");
    if (ib_is_closing(p->state) && p->theirs != c->mine)
        ib_close_requested(p, c->yours == p->mine);
    if (p->state == IB_IDLE) {
        if (!ib_evict_for_request(m, p) || conn_prepare(p, IB_ASKING) != STRATA_OK) {
            if (ib_evict_is_short(m))
                conn_turn_away(method, m, p, c);
            return; /* the peer repeats its request: there may be room then */
        }
        conn_turn_to(method, m, p);
    }
    if (p->state == IB_ASKING)
        conn_connect(p, c);
    else if (p->state == IB_ANSWERED && p->theirs == c->mine)
        m->count.duplicates++;
    if (p->state == IB_ANSWERED && p->up && p->theirs == c->mine) {
        m->count.replies++;
        (void)ib_conn_send(m, p, p->up, IB_CONN_REPLY);
    }
}

static void conn_got_reply(const struct ib_method *method, struct ib_module *m, struct ib_peer *p,
                           const struct ib_conn *c)
{
    if (p->state == IB_ASKING)
        conn_connect(p, c);
    if (p->state == IB_ANSWERED && p->up && p->theirs == c->mine) {
        (void)ib_conn_send(m, p, p->up, IB_CONN_READY);
        ib_conn_up(p);
    } else if (p->state == IB_UP && p->theirs == c->mine) {
        m->count.duplicates++; /* our READY was lost, and it asks again by its reply */
        ib_conn_send_once(method, m, p, IB_CONN_READY);
    }
}

static void conn_got_ready(struct ib_peer *p)
{
    if (p->state == IB_ANSWERED && p->up)
        ib_conn_up(p);
}

/* The peer has given up. The message names our attempt, or neither side has begun one. */
static void conn_got_failed(struct ib_peer *p)
{
    /* The connection had failed for both ends, and the peer is not ready yet to connect anew. */
    if (p->state == IB_ASKING && p->remade)
        return;
    p->told = true;
    ib_peer_broken(p, "it has given up the connection");
}

/* The peer has had our CLOSE. Until its own arrives ours is repeated, now and then: the peer may end meanwhile. */
static void conn_got_closed(struct ib_peer *p)
{
    if (ib_is_closing(p->state) && !ib_close_heard(p) && p->up)
        p->up->give_up_at = st_now_ns() + ib_conn_give_up_after(ib_module_of(p));
}

/* An out-of-band CLOSE: the peer's queue pair has failed it. The connection may be closed here already, or have failed.
 */
static void conn_got_close(const struct ib_method *method, struct ib_module *m, struct ib_peer *p,
                           const struct ib_conn *c)
{
    if (c->mine == 0) {
        m->count.refused++;
    } else if (c->mine == p->agreed) {
        ib_conn_answer(method, m, p, c, IB_CONN_CLOSED);
    } else if (p->mine == 0 || c->yours != p->mine || c->mine != p->theirs || p->state == IB_FAILED) {
        m->count.refused++; /* of an attempt that is over */
        ib_conn_answer(method, m, p, c, IB_CONN_FAILED);
    } else {
        ib_conn_heard(p);
        switch (ib_close_word(p, c->type == IB_CONN_CLOSE_TOO, c->credits[IB_HIGH], c->credits[IB_LOW])) {
        case IB_WORD_TAKEN:
            ib_conn_answer(method, m, p, c, IB_CONN_CLOSED);
            break;
        case IB_WORD_EARLY:
            break;
        case IB_WORD_LOST:
            ib_peer_broken(p, "what it had sent before it closed the connection was lost");
            break;
        }
    }
}

/* The peer's card does not fit; our own look at it says why. A peer that says MISFIT need not be told. */
static void conn_got_misfit(struct ib_module *m, struct ib_peer *p)
{
    struct ib_card card;
    char why[256];

    if (p->misfit && p->state == IB_IDLE)
        ib_wire_up_end(p);
    if (ib_card_fetch(m, p->ep.rank, &card, why, sizeof why) != STRATA_OK)
        ib_card_misfit(m, p->ep.rank, &card, why);
}

/* Random bytes, another job, another version: without our card nobody knows the key. */
static bool conn_is_genuine(const struct ib_module *m, const struct ib_conn *c)
{
    return c->version == IB_WIRE_VERSION && c->key == m->card.key && c->to == m->rte->rank && c->from >= 0 &&
           (m->rte->size <= 0 || c->from < m->rte->size) && c->from != m->rte->rank && c->mtu >= IBV_MTU_256 &&
           c->mtu <= IBV_MTU_4096;
}

bool ib_conn_take(struct ib_module *m, const struct ib_method *method, const struct ib_conn *c)
{
    struct ib_peer *p = NULL;

    if (!conn_is_genuine(m, c)) {
        m->count.refused++;
        return false;
    }
    if (!m->closing)
        p = ib_peer_get(m, c->from);
    if (!p)
        return true;
    ib_address_heard(m, p, c);
    if (!conn_method_fits(method, m, p, c))
        return true;
    if ((p->state == IB_FAILED || (p->state == IB_IDLE && m->dev.dead)) && c->type <= IB_CONN_READY) {
        p->theirs = c->mine;
        ib_conn_send_once(method, m, p, IB_CONN_FAILED);
        return true;
    }
    if (c->type == IB_CONN_REQUEST)
        conn_got_request(method, m, p, c);
    else if (c->type == IB_CONN_CLOSE || c->type == IB_CONN_CLOSE_TOO)
        conn_got_close(method, m, p, c);
    else if (c->type == IB_CONN_MISFIT)
        conn_got_misfit(m, p);
    else if (c->type == IB_CONN_MOVED)
        p->latest = conn_is_late(p, c) ? p->latest : c->mine;
    else if (c->yours != p->mine || (p->mine == 0 && c->type != IB_CONN_FAILED))
        m->count.refused++; /* of an attempt that is over */
    else if (c->type == IB_CONN_REPLY)
        conn_got_reply(method, m, p, c);
    else if (c->type == IB_CONN_READY)
        conn_got_ready(p);
    else if (c->type == IB_CONN_FAILED)
        conn_got_failed(p);
    else if (c->type == IB_CONN_BUSY)
        conn_got_busy(m, p);
    else if (c->type == IB_CONN_CLOSED)
        conn_got_closed(p);
    else
        m->count.refused++;
    return true;
}
