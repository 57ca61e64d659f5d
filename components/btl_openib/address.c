/* Addresses that change. A port that was down may come up with another LID or GID, and cards are published once. So
 * every connection message says the sender's address of now; who hears another one than it knew goes by that from then
 * on. Where the message cannot be heard, since the receiver has moved, too, sockets carry it (connect.c). A port's own
 * connections end with its address, and their peers are asked anew, which tells them. Peers whose connection nobody
 * uses at the time are told for a second, since they may be the next to ask. */
#include "openib.h"

#include <stdlib.h>
#include <string.h>

void ib_address_apply(const struct ib_peer *p, struct ib_card *card)
{
    if (!p || !p->moved)
        return;
    memcpy(card->gid, p->moved->gid, sizeof card->gid);
    card->lid = p->moved->lid;
    if (card->ethernet) /* a GID of RoCE is an IP address */
        memcpy(card->cm_address, p->moved->gid, sizeof card->cm_address);
}

static bool is_known(struct ib_module *m, const struct ib_peer *p, const struct ib_address *a)
{
    struct ib_card card;

    if (p->up)
        card = p->up->card;
    else if (ib_card_fetch(m, p->ep.rank, &card, NULL, 0) != STRATA_OK)
        return true; /* nothing is sent there */
    return card.lid == a->lid && memcmp(card.gid, a->gid, sizeof card.gid) == 0;
}

void ib_address_heard(struct ib_module *m, struct ib_peer *p, const struct ib_conn *c)
{
    static const struct ib_address none;

    /* Not said by rdmacm, which has its own way of finding ports; or said of old. */
    if (memcmp(&c->address, &none, sizeof none) == 0 || c->mine == 0 || (int32_t)(c->mine - p->latest) < 0 ||
        is_known(m, p, &c->address))
        return;
    if (!p->moved && !(p->moved = malloc(sizeof *p->moved)))
        return; /* it says it again */
    *p->moved = c->address;
    m->count.moved++;
    if (!p->up)
        return;
    ib_address_apply(p, &p->up->card);
    if (p->up->method->end)
        p->up->method->end(m, p->up);
}

void ib_address_changed(struct ib_module *m)
{
    memcpy(m->card.gid, m->gid.raw, sizeof m->card.gid);
    m->card.lid = m->port_attr.lid;
    st_log(m->btl.context, ST_LOG_WARN, "btl_openib",
           "%s has another address now: its connections end and are made anew", m->name);
    ib_methods_moved(m);
    for (struct ib_peer *p = m->all; p; p = p->next) {
        if (p->state == IB_ASKING)
            ib_wire_up_anew(p);
        else if (p->state != IB_IDLE)
            ib_peer_broken(p, "our port has another address now");
        else if (p->latest)
            ib_wire_up_moved(p);
    }
}
