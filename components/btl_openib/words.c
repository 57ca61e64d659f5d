/* What is said of a connection to a peer while there is none to say it by, which method it goes by, and that it is said
 * again until it is answered. What it means: connect.c. */
#include "words.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_WAIT 1000000000u /* ns between two of the same */
#define TELL_FOR     1000000000u /* ns for which a peer is told that its connection has failed */
#define MISFIT_FOR   4000000000u /* and that it does not fit: until a second address has been dialled */
#define PATIENCE     4u          /* times that something is said by one method before another is tried, too */

/* What cannot be sent now counts as lost; STRATA_ERR_SYSTEM: nor can it later, for there is no way to the peer. */
static int say_by(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w,
                  enum ib_conn_type type)
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
                        .yours = type == IB_CONN_REQUEST ? p->agreed : p->theirs,
                        .address = {.lid = m->card.lid}};

    memcpy(c.address.gid, m->card.gid, sizeof c.address.gid);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        if (p->q[i].qp)
            c.qpn[i] = c.psn[i] = p->q[i].qp->qp_num;
        c.psn[i] &= 0xffffffu;
        c.credits[i] = p->q[i].granted;
    }
    if (type == IB_CONN_CLOSE || type == IB_CONN_CLOSE_TOO) { /* which was the last of high priority */
        c.credits[IB_HIGH] = p->q[IB_HIGH].posted - 1;
        c.credits[IB_LOW] = p->q[IB_LOW].messages;
    }
    return method->send(m, w, &c);
}

int ib_say(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w, enum ib_conn_type type)
{
    return say_by(w->method, m, p, w, type);
}

/* It is not answered, or no way leads there: the peer may have another address than we know, and not know ours. Sockets
 * go another way. What librdmacm has answered it carries to the end, or says that it cannot; of a failure it tells by
 * ending the connection, which may have been made by sockets. */
static bool by_sockets_too(const struct ib_module *m, const struct ib_peer *p, const struct ib_wire_up *w)
{
    bool managed = w->method == &ib_method_rdmacm;

    return ib_methods_fall_back(m, w->method, &w->card) &&
           (p->misfit ||
            (w->repeats >= PATIENCE &&
             (p->state == IB_ASKING || ib_is_closing(p->state) || (p->state == IB_ANSWERED && !managed))) ||
            (managed && p->state == IB_FAILED));
}

/* What one in this state says until it is answered. */
static enum ib_conn_type word_of(const struct ib_peer *p)
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

/* What is to be said now, until it is answered. */
void ib_say_on(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w)
{
    enum ib_conn_type type = word_of(p);

    if (ib_say(m, p, w, type) == STRATA_ERR_SYSTEM)
        w->repeats = PATIENCE;
    if (by_sockets_too(m, p, w))
        (void)say_by(&ib_method_tcp, m, p, w, type);
}

static const struct ib_method *method_for(const struct ib_module *m, int rank, const struct ib_card *card)
{
    uint32_t number = ib_method_choose(m->card.methods, card->methods, m->rte->rank < rank);

    return number ? ib_method(number) : NULL;
}

/* Once, to a peer of which nothing is kept. */
static void say_once(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_card *card,
                     enum ib_conn_type type)
{
    struct ib_wire_up w = {.peer = p, .card = *card, .method = method};

    if (!w.method)
        return;
    (void)ib_say(m, p, &w, type);
    if (w.method->end)
        w.method->end(m, &w);
}

/* Into the list of those with a timer. */
struct ib_wire_up *ib_watch(struct ib_module *m, struct ib_peer *p, const struct ib_card *card, uint64_t give_up)
{
    struct ib_wire_up *w = calloc(1, sizeof *w);
    uint64_t now = st_now_ns();

    if (!w)
        return NULL;
    w->peer = p;
    w->card = *card;
    w->method = method_for(m, p->ep.rank, card);
    w->wait = (uint64_t)m->par->connect_retry_ms * 1000000u;
    w->again_at = now + w->wait;
    w->give_up_at = now + give_up;
    p->up = w;
    st_list_append(&m->wiring, &w->node);
    ib_attend(m);
    return w;
}

/* What we knew of the peer has been freed, and it is to be told something all the same. */
void ib_tell(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, enum ib_conn_type type)
{
    struct ib_card card;

    if (ib_card_fetch(m, p->ep.rank, &card, NULL, 0) == STRATA_OK)
        say_once(method, m, p, &card, type);
}

void ib_tell_for_a_while(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_card card;

    ib_wire_up_end(p);
    if (ib_card_fetch(m, p->ep.rank, &card, NULL, 0) == STRATA_OK && ib_watch(m, p, &card, TELL_FOR))
        ib_say_on(m, p, p->up);
}

/* Our requests fail, or our RDMA, which the peer cannot see: it may wait for us for ever. */
void ib_wire_up_failed(struct ib_peer *p)
{
    ib_tell_for_a_while(p);
}

/* Said again for a while, since it is not answered, by sockets too: there may be no method that both have listed, and
 * what does not fit may be the network that datagrams go by. */
void ib_wire_up_misfit(struct ib_module *m, int rank, const struct ib_card *card)
{
    struct ib_peer *p = ib_peer_get(m, rank);
    const struct ib_method *method = method_for(m, rank, card);

    if (!method && ib_methods_fall_back(m, NULL, card))
        method = &ib_method_tcp;
    if (!method || !p || p->up || !ib_watch(m, p, card, MISFIT_FOR))
        return;
    p->up->method = method;
    ib_say_on(m, p, p->up);
}

int ib_wire_up_close(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_card card;
    const struct ib_method *method;

    if (ib_card_fetch(m, p->ep.rank, &card, NULL, 0) != STRATA_OK)
        return STRATA_ERR_UNSUPPORTED;
    method = method_for(m, p->ep.rank, &card);
    if (method == &ib_method_rdmacm) /* carries requests and what follows them */
        method = ib_methods_fall_back(m, method, &card) ? &ib_method_tcp : NULL;
    if (!method)
        return STRATA_ERR_UNSUPPORTED;
    if (!ib_watch(m, p, &card, ib_give_up_after(m)))
        return STRATA_ERR_NOMEM;
    p->up->method = method;
    ib_say_on(m, p, p->up);
    return STRATA_OK;
}
void ib_wire_up_timers(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    for (struct st_node *n = m->wiring.next, *next; n != &m->wiring; n = next) {
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
        ib_say_on(m, p, w);
        w->wait = 2 * w->wait < LONGEST_WAIT ? 2 * w->wait : LONGEST_WAIT;
        w->again_at = st_now_ns() + w->wait; /* looking for the way may have taken long */
    }
}
