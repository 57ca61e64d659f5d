/* Out-of-band connection messages and their repetition. Their meaning: conn.c. */
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include "module.h"

#define LONGEST_WAIT 1000000000u /* ns between two of the same message */
#define TELL_FOR     1000000000u /* ns for which a peer is told that its connection has failed */
#define MISFIT_FOR   4000000000u /* ns for which it is told that it does not fit: a second address has been dialled */
#define PATIENCE     4u          /* repetitions by one method before another is tried, too */

uint32_t ib_conn_next_id(struct ib_module *m)
{
    m->conns.attempts += m->conns.attempts + 1 == 0; /* 0 is none */
    return ++m->conns.attempts;
}

uint64_t ib_conn_give_up_after(const struct ib_module *m)
{
    return (uint64_t)m->dev.par->connect_timeout_ms * 1000000u;
}

static struct ib_conn conn_message(const struct ib_module *m, const struct ib_wire_up *w, enum ib_conn_type type,
                                   uint32_t mine, uint32_t yours)
{
    struct ib_conn c = {.version = IB_WIRE_VERSION,
                        .type = (uint8_t)type,
                        .mtu = (uint8_t)m->dev.mtu,
                        .rd_atomic = ib_device_reads(&m->dev),
                        .rail = (uint8_t)m->index,
                        .key = w->card.key,
                        .from = m->rte->rank,
                        .to = w->peer->ep.rank,
                        .mine = mine,
                        .yours = yours,
                        .address = {.lid = m->card.lid}};

    memcpy(c.address.gid, m->card.gid, sizeof c.address.gid);
    return c;
}

/* A message that cannot be sent now counts as lost; STRATA_ERR_SYSTEM: no way leads to the peer. */
static int conn_send_by(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w,
                        enum ib_conn_type type)
{
    struct ib_conn c = conn_message(m, w, type, p->mine, type == IB_CONN_REQUEST ? p->agreed : p->theirs);

    for (int i = 0; i < IB_PRIORITIES; i++) {
        c.qpn[i] = p->q[i].number;
        c.credits[i] = p->q[i].granted;
    }
    if (type == IB_CONN_CLOSE || type == IB_CONN_CLOSE_TOO) { /* the number of the last message of high priority */
        c.credits[IB_HIGH] = p->q[IB_HIGH].posted - 1;
        c.credits[IB_LOW] = p->q[IB_LOW].messages;
    }
    return method->send(m, w, &c);
}

int ib_conn_send(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w, enum ib_conn_type type)
{
    return conn_send_by(w->method, m, p, w, type);
}

/* Without an answer, or a way: the peer may have another address than we know, and not know ours. Sockets go another
 * way. A connection that librdmacm has answered it carries to the end, or says that it cannot; it reports a failure by
 * ending the connection, which may have been made by sockets. */
static bool conn_falls_back(const struct ib_module *m, const struct ib_peer *p, const struct ib_wire_up *w)
{
    bool managed = w->method == &ib_method_rdmacm;

    return ib_methods_fall_back(m, w->method, &w->card) &&
           (p->misfit ||
            (w->repeats >= PATIENCE &&
             (p->state == IB_ASKING || ib_is_closing(p->state) || (p->state == IB_ANSWERED && !managed))) ||
            (managed && p->state == IB_FAILED));
}

/* The message that a peer in this state gets until it answers. */
static enum ib_conn_type conn_message_of_state(const struct ib_peer *p)
{
    switch ((enum ib_state)p->state) {
    case IB_FAILED:
        return IB_CONN_FAILED;
    case IB_IDLE:
        return p->misfit ? IB_CONN_MISFIT : IB_CONN_MOVED;
    case IB_ASKING:
        return IB_CONN_REQUEST;
    case IB_ASKED_TO_CLOSE:
        return IB_CONN_CLOSE;
    case IB_CONSENTED:
    case IB_CLOSED:
        return IB_CONN_CLOSE_TOO;
    default:
        return IB_CONN_REPLY;
    }
}

void ib_conn_send_state(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w)
{
    enum ib_conn_type type = conn_message_of_state(p);

    if (ib_conn_send(m, p, w, type) == STRATA_ERR_SYSTEM)
        w->repeats = PATIENCE;
    if (conn_falls_back(m, p, w))
        (void)conn_send_by(&ib_method_tcp, m, p, w, type);
}

static const struct ib_method *conn_method_for(const struct ib_module *m, int rank, const struct ib_card *card)
{
    uint32_t number = ib_method_choose(m->card.methods, card->methods, m->rte->rank < rank);

    return number ? ib_method(number) : NULL;
}

void ib_wire_up_release(struct ib_wire_up *w)
{
    if (w->method->end)
        w->method->end(ib_module_of(w->peer), w);
}

struct ib_wire_up *ib_wire_up_new(struct ib_module *m, struct ib_peer *p, const struct ib_card *card, uint64_t give_up)
{
    struct ib_wire_up *w = calloc(1, sizeof *w);
    uint64_t now = st_now_ns();

    if (!w)
        return NULL;
    w->peer = p;
    w->card = *card;
    w->method = conn_method_for(m, p->ep.rank, card);
    w->wait = (uint64_t)m->dev.par->connect_retry_ms * 1000000u;
    w->again_at = now + w->wait;
    w->give_up_at = now + give_up;
    p->up = w;
    st_list_append(&m->conns.pending, &w->node);
    ib_attend(&m->poll);
    return w;
}

void ib_wire_up_end(struct ib_peer *p)
{
    struct ib_wire_up *w = p->up;

    if (!w)
        return;
    st_list_remove(&w->node);
    ib_wire_up_release(w);
    free(w);
    p->up = NULL;
}

/* A peer that has answered it has connected to an address that has changed since. */
void ib_wire_up_restart(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    p->mine = ib_conn_next_id(m);
    ib_methods_disconnected(p);
    ib_wire_up_release(p->up);
    p->up->wait = (uint64_t)m->dev.par->connect_retry_ms * 1000000u;
    p->up->again_at = 0;
}

/* ---- once, to a peer of which nothing is kept ---- */

/* A wire-up for one message, released behind it. False: there is no way. */
static bool conn_once(struct ib_wire_up *w, const struct ib_method *method, struct ib_module *m, struct ib_peer *p)
{
    *w = (struct ib_wire_up){.peer = p, .method = method};
    return method && ib_card_fetch(m, p->ep.rank, &w->card, NULL, 0) == STRATA_OK;
}

void ib_conn_send_once(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, enum ib_conn_type type)
{
    struct ib_wire_up w;

    if (!conn_once(&w, method, m, p))
        return;
    (void)ib_conn_send(m, p, &w, type);
    ib_wire_up_release(&w);
}

void ib_conn_answer(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c,
                    enum ib_conn_type type)
{
    struct ib_wire_up w;
    struct ib_conn answer;

    if (!conn_once(&w, method, m, p))
        return;
    answer = conn_message(m, &w, type, c->yours, c->mine);
    (void)method->send(m, &w, &answer);
    ib_wire_up_release(&w);
}

/* ---- for a while ---- */

void ib_conn_send_for_a_while(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_card card;

    ib_wire_up_end(p);
    if (ib_card_fetch(m, p->ep.rank, &card, NULL, 0) == STRATA_OK && ib_wire_up_new(m, p, &card, TELL_FOR))
        ib_conn_send_state(m, p, p->up);
}

/* Repeated, since it is not answered, and by sockets too: there may be no method that both have listed, and the misfit
 * may be the network that datagrams go by. */
void ib_conn_send_misfit(struct ib_module *m, int rank, const struct ib_card *card)
{
    struct ib_peer *p = ib_peer_get(m, rank);
    const struct ib_method *method = conn_method_for(m, rank, card);

    if (!method && ib_methods_fall_back(m, NULL, card))
        method = &ib_method_tcp;
    if (!method || !p || p->up || !ib_wire_up_new(m, p, card, MISFIT_FOR))
        return;
    p->up->method = method;
    ib_conn_send_state(m, p, p->up);
}

int ib_conn_send_close(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_card card;
    const struct ib_method *method;

    if (ib_card_fetch(m, p->ep.rank, &card, NULL, 0) != STRATA_OK)
        return STRATA_ERR_UNSUPPORTED;
    method = conn_method_for(m, p->ep.rank, &card);
    if (method == &ib_method_rdmacm) /* carries requests and what follows them */
        method = ib_methods_fall_back(m, method, &card) ? &ib_method_tcp : NULL;
    if (!method)
        return STRATA_ERR_UNSUPPORTED;
    if (!ib_wire_up_new(m, p, &card, ib_conn_give_up_after(m)))
        return STRATA_ERR_NOMEM;
    p->up->method = method;
    ib_conn_send_state(m, p, p->up);
    return STRATA_OK;
}

void ib_wire_up_timers(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    for (struct st_node *n = m->conns.pending.next, *next; n != &m->conns.pending; n = next) {
        struct ib_wire_up *w = ST_CONTAINER(n, struct ib_wire_up, node);
        struct ib_peer *p = w->peer;
        next = n->next;
        if (now < w->again_at || p->error)
            continue;
        if (now >= w->give_up_at) {
            if (p->state == IB_IDLE)
                p->mine = 0;
            if (p->state == IB_FAILED || p->state == IB_IDLE)
                ib_wire_up_end(p); /* told often enough */
            else
                ib_peer_broken(p, ib_is_closing(p->state) ? "it does not say whether it has closed the connection"
                                                          : "it does not answer requests for a connection");
            continue;
        }
        m->count.repeats++;
        w->repeats++;
        ib_conn_send_state(m, p, w);
        w->wait = 2 * w->wait < LONGEST_WAIT ? 2 * w->wait : LONGEST_WAIT;
        w->again_at = st_now_ns() + w->wait; /* looking for the way may have taken long */
    }
}
