/* Addresses that change. A port that was down may come up with another LID or GID, and cards are published once. So
 * every connection message names the sender's present address, and its receiver uses that from then on. Where the
 * message cannot arrive, since the receiver has moved, too, sockets carry it (conn_send.c). A port's own connections
 * end with its address, and new requests tell their peers. Peers without a connection at the time are told for a
 * second, since they may be the next to ask. */
#include <stdlib.h>
#include <string.h>
#include "module.h"

static bool address_is_known(struct ib_module *m, const struct ib_peer *p, const struct ib_address *a)
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

    /* Without an address by rdmacm, which has its own way of finding ports; or of an old message. */
    if (memcmp(&c->address, &none, sizeof none) == 0 || c->mine == 0 || (int32_t)(c->mine - p->latest) < 0 ||
        address_is_known(m, p, &c->address))
        return;
    if (!p->moved && !(p->moved = malloc(sizeof *p->moved)))
        return; /* it is repeated */
    *p->moved = c->address;
    m->count.moved++;
    if (!p->up)
        return;
    ib_card_set_address(&p->up->card, p->moved);
    ib_wire_up_release(p->up);
}

static void address_changed(struct ib_module *m)
{
    memcpy(m->card.gid, m->dev.gid.raw, sizeof m->card.gid);
    m->card.lid = m->dev.port_attr.lid;
    st_log(m->btl.context, ST_LOG_WARN, "btl_openib",
           "%s has another address now: its connections end and are made anew", m->dev.name);
    ib_methods_moved(m);
    for (struct ib_peer *p = m->peers.all; p; p = p->next) {
        if (p->state == IB_ASKING) {
            ib_wire_up_restart(p);
        } else if (p->state != IB_IDLE) {
            ib_peer_broken(p, "our port has another address now");
        } else if (p->latest) {
            p->mine = ib_conn_next_id(m); /* earlier messages are old */
            ib_conn_send_for_a_while(p);
        }
    }
}

bool ib_address_refresh(struct ib_module *m)
{
    enum ib_port_state state = ib_port_refresh(&m->dev);

    if (state == IB_PORT_MOVED)
        address_changed(m);
    return state != IB_PORT_DOWN;
}
