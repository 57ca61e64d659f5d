/* Arrivals. A block of a member that is ahead lies in the landing cell of its epoch; one that comes during the call
 * goes to its place at once. Either says that the member has arrived. */
#include "in.h"

#include <string.h>

#include "op.h"

/* Whether a member can be in that call. Roots of bcasts that wait for this member send their blocks to others
 * meanwhile: each of them holds up one call, so that others are ahead by as many calls as there are members; and by one
 * more, which a leader gets that waits for a member of its node. */
static bool in_reach(const struct slot *s, uint16_t epoch)
{
    return (uint16_t)(epoch - s->epoch) <= s->n + 1;
}

/* ---- blocks that come ---- */

static void in_done(struct op *op, int m)
{
    op->in[m].done = true;
    op->in[m].put = false;
    op->ins_left--;
    if (op->rounds)
        arrival_rounds_came(op, m);
    else if (m < op->slot->n)
        op_came(op, m);
    if (op->relays)
        out_begin(op, 0);
}

/* All of a block that came by messages is here. */
static void in_finish(struct op *op, int m)
{
    struct slot *s = op->slot;
    const struct came *came = &s->member[m].came[s->epoch & 1u];
    size_t room = op_in_bytes(op, m), bytes = came->total < room ? (size_t)came->total : room;
    if (op->in[m].done)
        return;
    if (came->in_cell) {
        s->a->counted[COUNT_FROM_CELLS]++;
        if (bytes)
            memcpy(op_in_at(op, m), slot_cell(s, m, s->epoch), bytes);
    }
    if (came->total != room)
        op->error = STRATA_ERR_TRUNCATE;
    in_done(op, m);
}

void in_take_cells(struct op *op, int base)
{
    struct slot *s = op->slot;
    for (int m = base; m < base + s->n; m++)
        if (s->member[m].came[s->epoch & 1u].whole)
            in_finish(op, m);
}

/* The sender's place in the communicator, as it says it; -1: not true. */
static int in_sender(const struct slot *s, int32_t src, int rank)
{
    if (src < 0 || src >= s->n_all || !s->member[src].peer || s->member[src].peer->rank != rank)
        return -1;
    return src;
}

/* The call under way, if blocks of that epoch and entry go where it wants them. */
static struct op *in_op(const struct slot *s, int m, uint16_t epoch)
{
    struct op *op = epoch == s->epoch ? op_current(s) : NULL;
    return op && op_moves(op, m) ? op : NULL;
}

/* Sends what waits for news of an entry's member: its own block, and that of its node. */
static void in_wake(struct op *op, int m)
{
    const struct slot *s = op->slot;
    for (int entry = slot_rank(s, m); entry < s->n_all; entry += s->n)
        if (op_moves(op, entry))
            out_advert(op, entry);
}

/* An entry's member has begun that epoch. */
static void in_heard(struct slot *s, int m, uint16_t epoch)
{
    struct op *op = slot_heard(s, m, epoch) ? op_current(s) : NULL;
    if (op)
        in_wake(op, m);
}

/* A part of a block, of a length that fits. Returns what is wrong with it, or NULL. */
static const char *in_part(struct slot *s, int m, const struct wire_data *h, const struct st_frag *frag)
{
    struct came *came = &s->member[m].came[h->epoch & 1u];
    struct op *op = in_op(s, m, h->epoch);
    if (!came->begun) {
        bool in_cell = !op && h->total > 0;
        if (h->total < came->got)
            return "a block that is shorter than what was put of it";
        if (in_cell && (h->total > s->cell || m >= s->n_cells))
            return "a block that is longer than a landing cell";
        came->begun = true;
        came->waited = arrival_longer(came->waited, h->waited);
        came->total = h->total;
        came->in_cell = in_cell;
    }
    if (came->whole || h->total != came->total || h->offset > h->total || frag->len > h->total - h->offset ||
        frag->len > came->total - came->got)
        return "a part of a block that does not fit it";
    if (came->in_cell)
        memcpy(slot_cell(s, m, h->epoch) + h->offset, frag->data, frag->len);
    else if (op && h->offset < op_in_bytes(op, m)) {
        size_t room = op_in_bytes(op, m) - (size_t)h->offset;
        memcpy(op_in_at(op, m) + h->offset, frag->data, frag->len < room ? frag->len : room);
    }
    came->got += frag->len;
    came->whole = came->got == came->total;
    if (op && !came->in_cell)
        arrival_part_came(op, m, (size_t)h->offset, frag->len);
    if (came->whole && op)
        in_finish(op, m);
    return NULL;
}

static const char *in_data(struct arrival *a, const struct st_frag *frag)
{
    struct wire_data h;
    if (frag->hdr_len != sizeof(h))
        return "a malformed block";
    memcpy(&h, frag->hdr, sizeof(h));
    struct slot *s = slot_of_comm(a, h.comm);
    if (!s)
        return early_is_retired(a, h.comm) ? NULL : "a block for a communicator without collectives";
    int m = in_sender(s, h.src, frag->rank);
    if (slot_failed(s)) {
        if (m >= 0 && h.epoch == s->epoch && op_current(s)) { /* what comes by messages is not put */
            arrival_part_came(op_current(s), m, (size_t)h.offset, frag->len);
            op_check(s);
        }
        return NULL;
    }
    if (m < 0 || (uint16_t)(h.epoch - s->epoch) > 1)
        return "a block of a wrong member or call";
    s->member[slot_rank(s, m)].id = h.id;
    s->member[slot_rank(s, m)].known = true;
    in_heard(s, m, h.epoch);
    const char *wrong = in_part(s, m, &h, frag);
    op_check(s);
    return wrong;
}

/* ---- adverts and stops that come ---- */

bool in_keep_advert(struct slot *s, int rank, const struct wire_advert *advert, const void *key)
{
    int m = in_sender(s, advert->src, rank);
    struct came *came = m < 0 ? NULL : &s->member[m].came[advert->epoch & 1u];
    if (!came || !in_reach(s, advert->epoch) || came->advertised)
        return false;
    came->advertised = true;
    came->advert = *advert;
    memcpy(came->key, key, ST_BTL_KEY_MAX);
    s->member[m].cell = advert->cell;
    s->member[m].met = true;
    s->member[slot_rank(s, m)].id = advert->notice >> 2;
    s->member[slot_rank(s, m)].known = true;
    (void)slot_heard(s, m, advert->epoch);
    return true;
}

static const char *in_advert(struct arrival *a, const struct st_frag *frag)
{
    struct wire_advert h;
    uint8_t key[ST_BTL_KEY_MAX] = {0};
    if (frag->hdr_len != sizeof(h))
        return "a malformed advert";
    memcpy(&h, frag->hdr, sizeof(h));
    if (frag->len != (h.flags & ARRIVAL_PUT ? ST_BTL_KEY_MAX : 0))
        return "a malformed advert";
    memcpy(key, frag->data, frag->len);
    struct slot *s = slot_of_comm(a, h.comm);
    if (!s) {
        early_hold(a, frag->rank, &h, key);
        return NULL;
    }
    if (slot_failed(s)) {
        int m = in_sender(s, h.src, frag->rank);
        if (m >= 0 && h.flags & ARRIVAL_PUT)
            arrival_tell_stop(s, m, h.epoch, 0); /* nothing is put without it */
        return NULL;
    }
    if (!in_keep_advert(s, frag->rank, &h, key))
        return "an advert of a wrong member or call";
    if (op_current(s))
        in_wake(op_current(s), h.src);
    op_check(s);
    return NULL;
}

static const char *in_credit(struct arrival *a, const struct st_frag *frag)
{
    struct wire_credit h;
    if (frag->hdr_len != sizeof(h) || frag->len != 0)
        return "a malformed credit";
    memcpy(&h, frag->hdr, sizeof(h));
    struct slot *s = slot_of_comm(a, h.comm);
    if (!s || s->id != h.id) /* it was freed, and its number may have been used again */
        return NULL;
    int m = in_sender(s, h.src, frag->rank);
    if (m < 0)
        return "a credit of a wrong member";
    int16_t ahead = (int16_t)(uint16_t)(h.epoch - s->epoch);
    if (slot_failed(s) || ahead < -1) /* a block of this call may wait for a credit of the call before */
        return NULL;
    if (ahead >= 0 && !in_reach(s, h.epoch))
        return "a credit of a wrong call";
    in_heard(s, m, h.epoch);
    op_check(s);
    return NULL;
}

static const char *in_stop(struct arrival *a, const struct st_frag *frag)
{
    struct wire_stop h;
    if (frag->hdr_len != sizeof(h) || frag->len != 0)
        return "a malformed stop";
    memcpy(&h, frag->hdr, sizeof(h));
    struct slot *s = slot_of_comm(a, h.comm);
    struct op *op = s ? op_current(s) : NULL;
    if (!op || h.epoch != s->epoch) /* the call has ended otherwise */
        return NULL;
    for (int m = 0; m < s->n_all; m++) /* a member that does not have the communicator does not know its rank there */
        if (s->member[m].peer && s->member[m].peer->rank == frag->rank && (h.src < 0 || h.src == m))
            arrival_puts_end(op, m, op->piece > 0 ? h.yes : 0);
    op_check(s);
    return NULL;
}

static const char *in_vote(struct arrival *a, const struct st_frag *frag)
{
    struct wire_stop h;
    if (frag->hdr_len != sizeof(h) || frag->len != 0)
        return "a malformed vote";
    memcpy(&h, frag->hdr, sizeof(h));
    struct slot *s = slot_of_comm(a, h.comm);
    if (!s)
        return early_is_retired(a, h.comm) ? NULL : "a vote on a communicator without collectives";
    int m = in_sender(s, h.src, frag->rank);
    if (m < 0)
        return "a vote of a wrong member";
    const char *wrong = arrival_agree_heard(s, m, &h);
    op_check(s); /* calls that have waited for it */
    return wrong;
}

static const char *in_withdraw(struct arrival *a, const struct st_frag *frag)
{
    struct wire_stop h;
    if (frag->hdr_len != sizeof(h) || frag->len != 0)
        return "a malformed withdrawal";
    memcpy(&h, frag->hdr, sizeof(h));
    if (!slot_of_comm(a, h.comm))
        early_withdraw(a, frag->rank, &h);
    return NULL;
}

void in_deliver(struct st_coll *coll, const struct st_frag *frag)
{
    struct arrival *a = (struct arrival *)coll;
    const char *wrong = "an unknown message";
    switch (*(const volatile uint8_t *)frag->hdr) {
    case ARRIVAL_DATA:
        wrong = in_data(a, frag);
        break;
    case ARRIVAL_ADVERT:
        wrong = in_advert(a, frag);
        break;
    case ARRIVAL_STOP:
        wrong = in_stop(a, frag);
        break;
    case ARRIVAL_WITHDRAW:
        wrong = in_withdraw(a, frag);
        break;
    case ARRIVAL_CREDIT:
        wrong = in_credit(a, frag);
        break;
    case ARRIVAL_VOTE:
    case ARRIVAL_AGREED:
        wrong = in_vote(a, frag);
        break;
    }
    if (wrong)
        st_worker_protocol_error(a->w, "coll_arrival", frag, wrong, &a->counted[COUNT_REFUSED]);
}

void in_notified(struct st_coll *coll, int rank, uint32_t notice)
{
    struct arrival *a = (struct arrival *)coll;
    struct slot *s = slot_of_id(a, (notice & ((1u << NOTICE_WAITED) - 1)) >> 2);
    struct op *op = s ? op_current(s) : NULL;
    int m = op && (s->epoch & 1u) == (notice & 1u) ? slot_member_of(s, rank) : -1;
    if (m >= 0 && notice & 2u)
        m = s->n_all > s->n ? m + s->n : -1;
    if (m < 0 || !op->in[m].put || op->in[m].done) {
        a->counted[COUNT_REFUSED]++;
        return;
    }
    struct came *came = &s->member[m].came[s->epoch & 1u];
    uint8_t told = (uint8_t)(notice >> NOTICE_WAITED);
    if (op->piece == 0) {
        came->waited = arrival_longer(came->waited, told);
    } else if (!arrival_piece_landed(op, m, told)) {
        a->counted[COUNT_REFUSED]++;
        return;
    }
    if (!slot_failed(s))
        in_heard(s, m, s->epoch);
    if (op->piece == 0 || came->got == op_in_bytes(op, m))
        in_done(op, m);
    op_check(s);
}

/* Pieces of its block of that call that were put at the member. */
static uint8_t in_pieces(const struct slot *s, int m, uint16_t epoch)
{
    const struct op *op = epoch == s->epoch ? op_current(s) : NULL;
    return op ? op->out[m].pieces : 0;
}

void in_group_failed(struct slot *s)
{
    for (int m = 0; m < s->n_all; m++)
        for (int i = 0; i < 2; i++) {
            struct came *came = &s->member[m].came[i];
            if (came->advertised && came->advert.flags & ARRIVAL_PUT)
                arrival_tell_stop(s, m, came->advert.epoch, in_pieces(s, m, came->advert.epoch));
            came->advertised = false;
        }
    struct op *op = op_current(s);
    for (int m = 0; op && m < s->n_all; m++)
        if (op->in[m].put && !op->in[m].done)
            arrival_tell_withdraw(s, m);
    op_check(s);
}
