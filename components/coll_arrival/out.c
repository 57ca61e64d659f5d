/* Blocks that go: to the landing cell or straight to the member by messages, or by a put where its advert says. */
#include <string.h>

#include <strata/sdk/hash.h>
#include "op.h"

enum { PARTS_PER_TURN = 64 };

static struct member *out_member(const struct out *o)
{
    return &o->op->slot->member[o->to];
}

static struct came *out_came(const struct out *o)
{
    return &out_member(o)->came[o->op->slot->epoch & 1u];
}

/* A leader's block of its node tells the longest time of its node. */
static uint8_t out_waited(const struct out *o)
{
    const struct slot *s = o->op->slot;
    return o->to < s->n ? s->waited : o->op->node_waited;
}

static void out_done(struct out *o)
{
    o->state = OUT_DONE;
    o->op->outs_left--;
    o->op->slot->a->counted[COUNT_RELAYED] += o->op->relays;
    if (slot_has_advert(o->op->slot, o->to)) /* it is answered; the member's next one may come before the call ends */
        out_came(o)->advertised = false;
}

/* The path is lost: whether the block has arrived is unknown. Told to the group by the next round of progress. */
static void out_lost(struct out *o)
{
    struct slot *s = o->op->slot;
    o->state = OUT_DONE; /* and not counted as one that has gone */
    s->lost = slot_rank(s, o->to);
    s->a->lost = true;
    st_coll_attend(&s->a->base, true);
}

static void out_queue(struct out *o)
{
    o->op->busy++;
    st_worker_queue(o->op->slot->a->w, out_member(o)->peer, ST_WORK_REST, &o->work);
}

/* ---- messages ---- */

/* STRATA_OK: all have gone, or never will. STRATA_ERR_AGAIN, ST_WORK_MORE. */
static int out_messages(struct out *o)
{
    struct slot *s = o->op->slot;
    const strata_comm_t *comm = s->base.group->comm;
    struct st_btl_endpoint *ep = st_peer_way(out_member(o)->peer, 0);
    size_t bytes = op_out_bytes(o->op, o->to);
    struct wire_data h = {.type = ARRIVAL_DATA, .epoch = s->epoch, .comm = comm->id, .total = bytes, .id = s->id};
    h.waited = out_waited(o);
    h.src = comm->rank + o->to - slot_rank(s, o->to);
    for (int turn = 0; turn < PARTS_PER_TURN; turn++) {
        size_t left = o->end - o->sent, part = left < ep->btl->max_send ? left : ep->btl->max_send;
        h.offset = o->sent;
        int rc = ep->btl->ops->send(ep, ST_AM_COLL, &h, sizeof(h), op_out_at(o->op, o->to) + o->sent, (uint32_t)part);
        if (rc == STRATA_ERR_AGAIN)
            return turn ? ST_WORK_MORE : rc;
        if (rc != STRATA_OK) {
            st_worker_peer_failed(s->a->w, ep->rank, rc, "a block of a collective could not be sent");
            o->state = OUT_DONE;
            return STRATA_OK;
        }
        o->sent += part;
        o->gone += part;
        if (o->sent == o->end) {
            if (o->gone == bytes)
                out_done(o);
            else
                o->state = OUT_IDLE; /* the next part of a round's message */
            return STRATA_OK;
        }
    }
    return ST_WORK_MORE;
}

static void out_start_messages(struct out *o)
{
    struct slot *s = o->op->slot;
    bool fits = op_out_bytes(o->op, o->to) <= out_member(o)->cell;
    if (!o->by_messages)
        s->a->counted[fits ? COUNT_TO_CELLS : COUNT_ON_DEMAND]++;
    if (!o->by_messages && !fits && out_came(o)->advert.flags & ARRIVAL_PUT)
        s->a->counted[COUNT_PUT_FALLBACKS]++;
    o->by_messages = true;
    o->state = OUT_MESSAGES;
    /* A peer that was only heard from is connected by progress. */
    if (!out_member(o)->peer->bml || out_messages(o) != STRATA_OK)
        out_queue(o);
}

/* ---- puts ---- */

static void out_dereg(struct out *o)
{
    if (o->has_reg)
        o->notify.ep->btl->rdma->dereg(o->notify.ep->btl, &o->reg);
    o->has_reg = false;
}

/* A piece was put, and it is not the last one: the advert is still to be answered. */
static void out_piece_put(struct out *o)
{
    struct slot *s = o->op->slot;
    o->pieces++;
    o->gone = o->end;
    o->state = OUT_IDLE;
    if (slot_failed(s))
        arrival_tell_stop(s, o->to, s->epoch, o->pieces);
    else
        out_came(o)->advertised = true;
}

static void out_put_ended(struct out *o, int rc)
{
    struct slot *s = o->op->slot;
    if (rc == STRATA_OK && o->end < op_out_bytes(o->op, o->to)) {
        out_piece_put(o);
        return;
    }
    out_dereg(o);
    if (rc == STRATA_OK) {
        s->a->counted[COUNT_PUTS]++;
        out_done(o);
    } else if (slot_failed(s)) {
        arrival_tell_stop(s, o->to, s->epoch, o->pieces);
    } else if (rc == STRATA_ERR_UNSUPPORTED) {
        out_came(o)->advertised = true; /* until all has gone: a stop answers it if that fails */
        out_start_messages(o);
    } else {
        out_lost(o);
    }
}

static void out_put_done(struct st_notify *n, int rc)
{
    struct out *o = ST_CONTAINER(n, struct out, notify);
    struct slot *s = o->op->slot;
    o->op->busy--;
    out_put_ended(o, rc);
    op_check(s);
}

/* Whether the advert allows a put by the one path that there is. */
static bool out_can_put(const struct out *o)
{
    const struct st_peer *peer = out_member(o)->peer;
    const struct wire_advert *advert = &out_came(o)->advert;
    if (!(advert->flags & ARRIVAL_PUT) || advert->length != op_out_bytes(o->op, o->to) || !peer->bml ||
        peer->bml->n_paths != 1)
        return false;
    const struct st_btl_endpoint *ep = st_peer_path(peer, 0);
    const char *name = ep->btl->component->name;
    return ep->caps & ST_BTL_PUT && advert->module == (uint32_t)st_hash_bytes(name, strlen(name));
}

/* The second value in the notice of a put: the number of a piece, else the time of the call before. */
static uint32_t out_tells(const struct out *o)
{
    return o->op->piece > 0 ? o->pieces : out_waited(o);
}

/* STRATA_OK, or STRATA_ERR_AGAIN: nothing has begun. */
static int out_put(struct out *o)
{
    struct slot *s = o->op->slot;
    struct st_peer *peer = out_member(o)->peer;
    struct came *came = out_came(o);
    struct st_btl *btl = st_peer_path(peer, 0)->btl;
    size_t bytes = op_out_bytes(o->op, o->to);
    char *from = (char *)(uintptr_t)op_out_at(o->op, o->to);
    if (!o->has_reg) {
        int rc = btl->rdma->reg(btl, from, bytes, ST_BTL_SOURCE, &o->reg);
        if (rc == STRATA_ERR_AGAIN)
            return rc;
        if (rc != STRATA_OK) {
            out_start_messages(o);
            return STRATA_OK;
        }
        o->has_reg = true;
    }
    struct st_notify_put put = {.local = from + o->sent,
                                .reg = &o->reg,
                                .remote = came->advert.address + o->sent,
                                .key = came->key,
                                .len = o->end - o->sent,
                                .am = ST_AM_COLL,
                                .notice = (came->advert.notice & ((1u << NOTICE_WAITED) - 1)) | out_tells(o)
                                                                                                    << NOTICE_WAITED};
    o->notify.done = out_put_done;
    o->notify.ep = st_peer_path(peer, 0);
    int rc = st_worker_put_notify(s->a->w, peer, 0, &put, &o->notify);
    if (rc == STRATA_ERR_AGAIN)
        return rc;
    came->advertised = false; /* answered: by the notice, or by what follows from the error */
    if (rc == STRATA_OK)
        o->op->busy++;
    else
        out_put_ended(o, rc == 1 ? STRATA_OK : rc);
    return STRATA_OK;
}

/* ---- pending work ---- */

static int out_run(void *arg, struct st_work *work)
{
    struct out *o = ST_CONTAINER(work, struct out, work);
    struct op *op = o->op;
    struct slot *s = op->slot;
    int rc = STRATA_OK;
    (void)arg;
    if (!slot_failed(s))
        rc = o->state == OUT_PUT ? out_put(o) : out_messages(o);
    if (rc != STRATA_OK)
        return rc;
    op->busy--;
    if (slot_failed(s))
        out_dereg(o);
    op_check(s);
    return STRATA_OK;
}

static void out_drop(void *arg, struct st_work *work, int rc)
{
    struct out *o = ST_CONTAINER(work, struct out, work);
    struct slot *s = o->op->slot;
    (void)arg, (void)rc;
    out_dereg(o);
    o->op->busy--;
    op_check(s);
}

static const struct st_work_ops out_work = {ST_AM_COLL, out_run, out_drop};

/* ---- order ---- */

/* Sends the block of a member, unless it has to wait for the member's advert, or is not here yet: then false. */
static bool out_go(struct op *op, int m)
{
    struct out *o = &op->out[m];
    const struct member *p = out_member(o);
    if (o->state != OUT_IDLE || p->peer->failed)
        return true;
    if (op->relays && op->piece == 0 && !op->in[op->source].done)
        return false;
    if (!p->met || !slot_may_send(op->slot, m) || (op_out_bytes(op, m) > p->cell && !slot_has_advert(op->slot, m)))
        return false;
    bool puts = !o->by_messages && op_out_bytes(op, m) > p->cell && out_can_put(o);
    o->end = op_out_bytes(op, m);
    if (op->rounds && !arrival_rounds_range(op, m, puts, o))
        return false;
    if (op->piece > 0 && !arrival_piece_range(op, m, puts))
        return false;
    o->work = (struct st_work){.ops = &out_work};
    if (!puts) {
        out_start_messages(o);
        return true;
    }
    o->state = OUT_PUT;
    o->work.rdma = true;
    if (out_put(o) == STRATA_ERR_AGAIN)
        out_queue(o);
    return true;
}

/* Direct: one destination after the other, each waits for those before. */
static void out_walk(struct op *op, int base)
{
    int n = op->slot->n, me = op->slot->base.group->comm->rank, *cursor = &op->cursor[base > 0];
    for (*cursor = *cursor ? *cursor : 1; *cursor < n && out_go(op, base + (me + *cursor) % n);)
        ++*cursor;
}

static bool out_has_arrived(const struct out *o)
{
    const struct slot *s = o->op->slot;
    return out_came(o)->begun || slot_has_advert(s, o->to) || s->member[slot_rank(s, o->to)].seen > s->call;
}

/* PAP_Direct (paper, 4.2): first the members that have arrived, then the others, none of which is waited for. */
void out_begin(struct op *op, int base)
{
    int n = op->slot->n, me = op->slot->base.group->comm->rank;
    if (!op->aware) {
        out_walk(op, base);
        return;
    }
    for (int k = 1; k < n; k++)
        if (out_has_arrived(&op->out[base + (me + k) % n]))
            (void)out_go(op, base + (me + k) % n);
    for (int k = 1; k < n; k++)
        (void)out_go(op, base + (me + k) % n);
}

void out_rounds(struct op *op)
{
    for (int m = 0; m < op->slot->n; m++)
        while (op->out[m].state == OUT_IDLE && !op->slot->member[m].peer->failed && out_go(op, m))
            ;
}

/* One piece to each in turn: those who pass it on can begin. */
void out_pieces(struct op *op)
{
    out_begin(op, 0);
    for (bool more = true; more;) {
        more = false;
        for (int m = 0; m < op->slot->n; m++)
            if (op->out[m].state == OUT_IDLE && op->out[m].gone > 0 && !op->slot->member[m].peer->failed)
                more = out_go(op, m) || more;
    }
}

void out_end(struct op *op)
{
    for (int m = 0; m < op->slot->n_all; m++)
        out_dereg(&op->out[m]);
}

void out_advert(struct op *op, int m)
{
    if (op->rounds)
        return; /* op_check sends what it allows */
    if (op->aware)
        (void)out_go(op, m);
    else
        out_walk(op, m >= op->slot->n ? op->slot->n : 0);
}
