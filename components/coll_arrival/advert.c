/* Messages of a call to members when it begins: adverts, to those whose blocks do not fit their landing cell here
 * or that do not know its size; and credits (slot_may_send). */
#include "in.h"

#include <string.h>

#include <strata/sdk/hash.h>
#include "op.h"

/* Registers the place of a block for a put of the member, if it can be put there. */
static bool in_register(struct op *op, int m, size_t bytes)
{
    const struct arrival *a = op->slot->a;
    const struct st_peer *peer = op->slot->member[m].peer;
    struct in *in = &op->in[m];
    size_t least = a->config.scheme == SCHEME_ZCOPY ? 1 : a->config.put_min;
    if (a->config.scheme == SCHEME_COPY || bytes == 0 || bytes < least || !peer->bml || peer->bml->n_paths != 1 ||
        peer->failed)
        return false;
    struct st_btl_endpoint *ep = st_peer_path(peer, 0);
    if (!(ep->caps & ST_BTL_PUT))
        return false;
    in->btl = ep->btl;
    in->has_reg = ep->btl->rdma->reg(ep->btl, op_in_at(op, m), bytes, ST_BTL_ANY_USE, &in->reg) == STRATA_OK;
    return in->has_reg;
}

static void in_advertise_to(struct op *op, int m)
{
    struct slot *s = op->slot;
    const strata_comm_t *comm = s->base.group->comm;
    struct in *in = &op->in[m];
    size_t bytes = op_in_bytes(op, m);
    struct wire_advert advert = {.type = ARRIVAL_ADVERT,
                                 .epoch = s->epoch,
                                 .comm = comm->id,
                                 .src = comm->rank + m - slot_rank(s, m),
                                 .cell = s->cell,
                                 .address = (uint64_t)(uintptr_t)op_in_at(op, m),
                                 .length = bytes,
                                 .notice = s->id << 2 | (m >= s->n ? 2u : 0) | (s->epoch & 1u)};
    in->put = in_register(op, m, bytes);
    in->n_puts = PIECES_MOST;
    if (in->put) {
        const char *name = in->btl->component->name;
        advert.flags = ARRIVAL_PUT;
        advert.module = (uint32_t)st_hash_bytes(name, strlen(name));
    }
    s->a->counted[COUNT_ADVERTS]++;
    s->member[m].greeted = true;
    s->member[slot_rank(s, m)].told = s->call + 1;
    arrival_tell(s->a, s->member[m].peer, &advert, sizeof(advert), in->reg.key, in->put ? ST_BTL_KEY_MAX : 0);
}

/* The member may send a block of the call after this one, or of this one if it did not know that the call before has
 * begun here. Without the number of its slot, which comes with its first message, an advert says so. */
static void in_credit_to(struct op *op, int m)
{
    struct slot *s = op->slot;
    struct member *p = &s->member[slot_rank(s, m)];
    bool stale = s->all_begun < s->call && p->told < s->call;
    if (!stale && (op->root < 0 || !p->known))
        return;
    if (!p->known) {
        in_advertise_to(op, m);
        return;
    }
    struct wire_credit credit = {.type = ARRIVAL_CREDIT,
                                 .epoch = s->epoch,
                                 .comm = s->base.group->comm->id,
                                 .src = s->base.group->comm->rank,
                                 .id = p->id};
    s->a->counted[COUNT_CREDITS]++;
    p->told = s->call + 1;
    arrival_tell(s->a, p->peer, &credit, sizeof(credit), NULL, 0);
}

void in_advertise(struct op *op, int base)
{
    struct slot *s = op->slot;
    int me = s->base.group->comm->rank;
    for (int k = 1; k < s->n; k++) {
        int m = base + (me - k + s->n) % s->n;
        if (op->in[m].done)
            continue;
        if (!s->member[m].greeted || op_in_bytes(op, m) > s->cell)
            in_advertise_to(op, m);
        else
            in_credit_to(op, m);
    }
}
