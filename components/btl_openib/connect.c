/* Connections on the first send: the states ASKING, ANSWERED and UP of docs/design/btl_openib.md. Requests and replies
 * carry the numbers of both queue pairs. Whoever waits for an answer sends again; who hears twice answers twice. Two
 * that ask each other at the same time take each other's request for the answer, so that one pair results. */
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The device has no more queue pairs, or there is no more memory for them. Those of another may go; when none become
 * free for as long as a peer may take to answer, it is an error; at once where others have no part in it. */
static void shortage(struct ib_peer *p, uint64_t now)
{
    struct ib_module *m = ib_module(p->ep.btl);
    bool ours = p->refusal == EINVAL || p->refusal == EOPNOTSUPP || p->refusal == ENOSYS;

    ib_is_short_now(m);
    if (p->short_since == 0)
        p->short_since = now;
    if (ours || now - p->short_since >= ib_give_up_after(m)) {
        snprintf(m->refusal, sizeof m->refusal, "no queue pair can be made for it: %s", strerror(p->refusal));
        ib_peer_broken(p, m->refusal);
    }
    if (!ours)
        ib_teardown_make_room(m);
}

static uint32_t next_id(struct ib_module *m)
{
    m->attempts += m->attempts + 1 == 0; /* 0 is none */
    return ++m->attempts;
}

static int begin(struct ib_peer *p, enum ib_state state)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_card card;
    char why[256] = "";
    int rc;

    /* What is said now tells the peer our address, and the device's event may not have been read yet. */
    (void)ib_port_refresh(m);
    rc = ib_card_fetch(m, p->ep.rank, &card, why, sizeof why);
    if (rc != STRATA_OK) {
        ib_misfit(m, p->ep.rank, &card, why);
        return rc;
    }
    rc = ib_qps_make(p);
    if (rc != STRATA_OK) {
        shortage(p, st_now_ns());
        return rc;
    }
    p->short_since = p->waits_since = 0;
    ib_wire_up_end(p); /* the peer may still be told something */
    if (!ib_watch(m, p, &card, ib_give_up_after(m))) {
        ib_qps_unmake(p);
        return STRATA_ERR_NOMEM;
    }
    p->mine = next_id(m);
    p->theirs = 0;
    p->state = (uint8_t)state;
    return STRATA_OK;
}

int ib_wire_up_begin(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);
    int rc = m->dead ? STRATA_ERR_UNREACHABLE : begin(p, IB_ASKING);

    if (rc != STRATA_OK)
        return rc;
    p->up->began = st_now_ns();
    m->count.requests++;
    ib_say_on(m, p, p->up);
    return STRATA_OK;
}

void ib_wire_up_end(struct ib_peer *p)
{
    struct ib_wire_up *w = p->up;

    if (!w)
        return;
    st_list_remove(&w->node);
    if (w->method->end)
        w->method->end(ib_module(p->ep.btl), w);
    free(w);
    p->up = NULL;
}

static void is_up(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].credits = p->up->credits[i];
    p->q[IB_HIGH].crowded_at = m->par->coalesce_at ? ib_crowd_from_now(m, &p->q[IB_HIGH]) : 0;
    ib_not_crowded(p);
    p->usual = true;
    p->state = IB_UP;
    p->remade = false;
    m->count.connected++;
    if (p->up->began) {
        uint64_t took = st_now_ns() - p->up->began;
        m->count.asked++;
        m->count.connect_ns += took;
        if (took > m->count.slowest_ns)
            m->count.slowest_ns = took;
    }
    ib_wire_up_end(p);
}

void ib_wire_up_heard(struct ib_peer *p)
{
    if (p->state == IB_ANSWERED)
        is_up(p);
}

static void connect_to(struct ib_peer *p, const struct ib_conn *c)
{
    int rc = ib_qps_connect(p, c);

    if (rc == STRATA_ERR_AGAIN)
        return;
    p->theirs = p->latest = c->mine;
    if (rc != STRATA_OK)
        ib_peer_broken(p, "the queue pairs cannot be connected");
    else
        p->state = IB_ANSWERED;
}

/* Of an attempt that is over: a copy that was on its way for long. Whichever attempt of the peer's has come to anything
 * has told us its id. */
static bool late(const struct ib_peer *p, const struct ib_conn *c)
{
    return c->mine == 0 || ((int32_t)(c->mine - p->latest) <= 0 && c->mine != p->theirs);
}

/* From now on the peer is talked to by this method. */
static void turn_to(const struct ib_method *method, struct ib_module *m, struct ib_peer *p)
{
    struct ib_wire_up *w = p->up;

    if (w->method == method)
        return;
    if (w->method->end)
        w->method->end(m, w);
    if (w->method->disconnected)
        w->method->disconnected(m, p);
    w->method = method;
}

/* Of an attempt that is over: nothing is to be done about it, by whatever method it comes. */
static bool stale(const struct ib_peer *p, const struct ib_conn *c)
{
    return c->type == IB_CONN_REQUEST ? late(p, c) : c->yours != p->mine;
}

/* Whether to listen to what has come by a method that the peer is not talked to by. Datagrams and frames may come in
 * any order, and copies do no harm; who hears goes on by what is heard. An identifier of librdmacm is part of its
 * connection: what it has answered stays its for as long as it is there, else it may be given up for sockets, not taken
 * up beside them. */
static bool comes_right(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    const struct ib_method *now = p->up ? p->up->method : method;

    if (now == method || c->type > IB_CONN_READY || ib_is_closing(p->state) || stale(p, c))
        return true;
    if (method == &ib_method_rdmacm ||
        (p->state == IB_ANSWERED && c->type == IB_CONN_REQUEST && now->holds && now->holds(m, p)))
        return false;
    turn_to(method, m, p);
    return true;
}

/* Whoever asks holds queue pairs for it, and so do we for those that we ask: when the devices have no more, all could
 * wait for each other. Nothing is kept of this request, and it is not taken up later, however often it comes; so the
 * peer may give its queue pairs back. librdmacm would have to end its connection for that. */
static void turn_away(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    if (method == &ib_method_rdmacm)
        return;
    p->turned_away = p->latest = p->theirs = c->mine;
    ib_tell(method, m, p, IB_CONN_BUSY);
    p->theirs = 0;
}

/* The peer has no room. If we ask more than we may, others get what we hold for it, and the next send asks
 * again when there is room; else it is asked again soon, as something new. */
static void is_turned_away(struct ib_module *m, struct ib_peer *p)
{
    if (p->state != IB_ASKING)
        return;
    if (!ib_asks_too_many(m)) {
        p->mine = next_id(m);
        p->up->repeats = 0; /* it was heard */
        p->up->wait = (uint64_t)m->par->connect_retry_ms * 1000000u;
        p->up->again_at = st_now_ns() + p->up->wait;
        return;
    }
    ib_qps_unmake(p);
    ib_wire_up_end(p);
    p->mine = p->theirs = 0;
    p->state = IB_IDLE;
}

static void requested(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    if (p->state == IB_IDLE && c->mine && c->mine == p->turned_away && c->mine == p->latest) { /* our word was lost */
        turn_away(method, m, p, c);
        return;
    }
    if (late(p, c)) {
        m->count.refused++;
        return;
    }
    /* For the peer the connection has failed, and it connects anew. So it has failed for us; what was sent by it goes
     * another way, and the layer above lets us connect again. */
    if ((p->state == IB_UP || p->state == IB_ANSWERED) && p->theirs != c->mine)
        ib_peer_broken(p, "the peer has given the connection up and connects anew");
    if (ib_is_closing(p->state) && p->theirs != c->mine)
        ib_teardown_requested(p, c->yours == p->mine);
    if (p->state == IB_IDLE) {
        if (!ib_room_for_request(m, p) || begin(p, IB_ASKING) != STRATA_OK) {
            if (ib_is_short(m))
                turn_away(method, m, p, c);
            return; /* asked again later: there may be room then */
        }
        turn_to(method, m, p);
    }
    if (p->state == IB_ASKING)
        connect_to(p, c);
    else if (p->state == IB_ANSWERED && p->theirs == c->mine)
        m->count.duplicates++;
    if (p->state == IB_ANSWERED && p->up && p->theirs == c->mine) {
        m->count.replies++;
        (void)ib_say(m, p, p->up, IB_CONN_REPLY);
    }
}

static void replied(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    if (p->state == IB_ASKING)
        connect_to(p, c);
    if (p->state == IB_ANSWERED && p->up && p->theirs == c->mine) {
        (void)ib_say(m, p, p->up, IB_CONN_READY);
        is_up(p);
    } else if (p->state == IB_UP && p->theirs == c->mine) {
        m->count.duplicates++; /* our READY was lost, and it asks again by its reply */
        ib_tell(method, m, p, IB_CONN_READY);
    }
}

/* The peer has given up. It knows the id of our attempt, or neither of us has begun one. */
static void has_failed(struct ib_peer *p)
{
    /* It had failed for both, and the peer is not ready to connect anew. It may be soon. */
    if (p->state == IB_ASKING && p->remade)
        return;
    p->told = true;
    ib_peer_broken(p, "it has given up the connection");
}

/* The peer has had our last word. Until it has said its own it is asked on, now and then: it may end meanwhile. */
static void closed(struct ib_peer *p)
{
    if (ib_is_closing(p->state) && !ib_teardown_heard(p) && p->up)
        p->up->give_up_at = st_now_ns() + ib_give_up_after(ib_module(p->ep.btl));
}

/* To a word of the peer's about a connection that it names. */
static void answer(const struct ib_method *method, struct ib_module *m, const struct ib_peer *p,
                   const struct ib_conn *c, enum ib_conn_type type)
{
    struct ib_peer as = {.ep = p->ep, .mine = c->yours, .theirs = c->mine};

    ib_tell(method, m, &as, type);
}

/* The peer's last word of a connection, whose queue pair has failed it. That connection may be closed here already, or
 * have failed. */
static void parted(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    if (c->mine == 0) {
        m->count.refused++;
    } else if (c->mine == p->agreed) {
        answer(method, m, p, c, IB_CONN_CLOSED);
    } else if (p->mine == 0 || c->yours != p->mine || c->mine != p->theirs || p->state == IB_FAILED) {
        m->count.refused++; /* of an attempt that is over */
        answer(method, m, p, c, IB_CONN_FAILED);
    } else {
        ib_wire_up_heard(p);
        switch (ib_teardown_word(p, c->type == IB_CONN_CLOSE_TOO, c->credits[IB_HIGH], c->credits[IB_LOW])) {
        case IB_WORD_TAKEN:
            answer(method, m, p, c, IB_CONN_CLOSED);
            break;
        case IB_WORD_EARLY:
            break;
        case IB_WORD_LOST:
            ib_peer_broken(p, "what it had sent before it closed the connection was lost");
            break;
        }
    }
}

/* The peer's card does not fit; our own look at it says what of it. Who tells us so need not be told. */
static void does_not_fit(struct ib_module *m, struct ib_peer *p)
{
    struct ib_card card;
    char why[256];

    if (p->misfit && p->state == IB_IDLE)
        ib_wire_up_end(p);
    if (ib_card_fetch(m, p->ep.rank, &card, why, sizeof why) != STRATA_OK)
        ib_misfit(m, p->ep.rank, &card, why);
}

static void answered(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    switch (c->type) {
    case IB_CONN_REPLY:
        replied(method, m, p, c);
        break;
    case IB_CONN_READY:
        if (p->state == IB_ANSWERED && p->up)
            is_up(p);
        break;
    case IB_CONN_FAILED:
        has_failed(p);
        break;
    case IB_CONN_BUSY:
        is_turned_away(m, p);
        break;
    case IB_CONN_CLOSED:
        closed(p);
        break;
    default:
        m->count.refused++;
    }
}

/* Random bytes, another job's, another version's: whoever has not read our card does not know the key. */
static bool genuine(const struct ib_module *m, const struct ib_conn *c)
{
    return c->version == IB_WIRE_VERSION && c->key == m->card.key && c->to == m->rte->rank && c->from >= 0 &&
           (m->rte->size <= 0 || c->from < m->rte->size) && c->from != m->rte->rank && c->mtu >= IBV_MTU_256 &&
           c->mtu <= IBV_MTU_4096;
}

bool ib_wire_up_take(struct ib_module *m, const struct ib_method *method, const struct ib_conn *c)
{
    struct ib_peer *p = NULL;

    if (!genuine(m, c)) {
        m->count.refused++;
        return false;
    }
    if (!m->closing)
        p = ib_peer_get(m, c->from);
    if (!p)
        return true;
    ib_address_heard(m, p, c);
    if (!comes_right(method, m, p, c))
        return true;
    if ((p->state == IB_FAILED || (p->state == IB_IDLE && m->dead)) && c->type <= IB_CONN_READY) {
        p->theirs = c->mine;
        ib_tell(method, m, p, IB_CONN_FAILED);
        return true;
    }
    if (c->type == IB_CONN_REQUEST)
        requested(method, m, p, c);
    else if (c->type == IB_CONN_CLOSE || c->type == IB_CONN_CLOSE_TOO)
        parted(method, m, p, c);
    else if (c->type == IB_CONN_MISFIT)
        does_not_fit(m, p);
    else if (c->type == IB_CONN_MOVED)
        p->latest = late(p, c) ? p->latest : c->mine;
    else if (c->yours != p->mine || (p->mine == 0 && c->type != IB_CONN_FAILED))
        m->count.refused++; /* of an attempt that is over */
    else
        answered(method, m, p, c);
    return true;
}

void ib_wire_up_moved(struct ib_peer *p)
{
    p->mine = next_id(ib_module(p->ep.btl)); /* what was said before is old */
    ib_tell_for_a_while(p);
}

/* Whoever has answered it has connected to what was our address. */
void ib_wire_up_anew(struct ib_peer *p)
{
    p->mine = next_id(ib_module(p->ep.btl));
    ib_methods_disconnected(p);
    if (p->up->method->end)
        p->up->method->end(ib_module(p->ep.btl), p->up);
    p->up->wait = (uint64_t)ib_module(p->ep.btl)->par->connect_retry_ms * 1000000u;
    p->up->again_at = 0;
}
