/* Sending: by the ring that the peer granted, else by the peer's shared queue, with a cell for what is long. */
#include "send.h"
#include "area.h"
#include "learn.h"
#include "ring_inl.h"
#include "single_copy.h"
#include "sm.h"
#include "wake.h"
#include <strata/sdk/clock.h>

/* What is to be sent: bytes at `data`, or a window when `payload` is set. Constant arguments: see style 11. */
struct outgoing {
    const void *hdr;
    const void *data;
    const struct st_payload *payload;
    uint32_t hdr_len, len;
};

static inline int sm_put_payload(const struct outgoing *o, uint8_t *dst, uint32_t movs_min)
{
    if (o->payload)
        return st_payload_gather(o->payload, dst);
    st_copy_shared(dst, o->data, o->len, movs_min);
    return STRATA_OK;
}

/* A long fragment. One in SM_TIMED_EVERY is timed, unless packing would count as well. */
static __attribute__((noinline)) int sm_put_long(struct sm_peer *p, const struct outgoing *o, uint8_t *dst)
{
    uint64_t begin;

    if (o->payload || sm_module(p->ep.btl)->long_sent++ % SM_TIMED_EVERY)
        return sm_put_payload(o, dst, p->movs_min);
    begin = st_now_ns();
    st_copy_shared(dst, o->data, o->len, p->movs_min);
    sm_ring_filled(p, o->len, st_now_ns() - begin);
    return STRATA_OK;
}

/* Tells a sleeping peer of what was published. */
static inline void sm_send_wake(struct sm_peer *p)
{
    if (ST_UNLIKELY(sm_asleep(p)))
        sm_wake_peer(p);
}

static int sm_queue_send(struct sm_peer *p, uint32_t kind, const struct outgoing *o);

/* Room for the payload in the ring's data area; NULL: none. */
static inline uint8_t *ring_room(struct sm_ring_tx *tx, uint32_t len, uint32_t *flags, uint32_t *next)
{
    return ST_LIKELY(len <= tx->most) ? sm_ring_data_room(tx, len, flags, next) : NULL;
}

/* Any message that the ring can take. */
static int sm_ring_send(struct sm_peer *p, uint32_t kind, const struct outgoing *o)
{
    struct sm_ring_tx *tx = &p->tx;
    struct sm_desc *d = sm_ring_claim(tx);
    uint32_t flags = 0, next = tx->dpos;
    uint8_t *dst;
    int rc;

    if (ST_UNLIKELY(!d))
        return sm_room_wanted(p, SM_WANTS_RING);
    dst = o->hdr_len + o->len <= SM_DESC_INLINE ? d->bytes + o->hdr_len : ring_room(tx, o->len, &flags, &next);
    while (ST_UNLIKELY(!dst)) {
        enum sm_area_answer more = sm_area_more(p, o->len);
        if (more == SM_AREA_QUEUE)
            return sm_queue_send(p, kind, o);
        if (more == SM_AREA_LATER || (d = sm_ring_claim(tx)) == NULL)
            return sm_room_wanted(p, SM_WANTS_RING);
        next = tx->dpos;
        dst = ring_room(tx, o->len, &flags, &next);
    }
    rc = ST_UNLIKELY(o->len >= SM_RING_TIMED) ? sm_put_long(p, o, dst)
         : o->len                             ? sm_put_payload(o, dst, p->movs_min)
                                              : STRATA_OK;
    if (ST_UNLIKELY(rc != STRATA_OK))
        return rc;
    sm_copy_small(d->bytes, o->hdr, o->hdr_len);
    tx->dpos = next;
    sm_ring_publish(tx, d, sm_word(kind << 16 | flags, o->hdr_len, o->len));
    sm_send_wake(p);
    return STRATA_OK;
}

static int sm_queue_send(struct sm_peer *p, uint32_t kind, const struct outgoing *o)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_cell *cell = NULL;
    struct sm_slot *slot;
    uint32_t index = 0, flags = 0;
    uint64_t full;
    uint8_t small[SM_SLOT_INLINE];
    const void *inline_data = o->data;
    int rc;

    if (p->gone) /* it ended in order and would not have read this: as if it had been sent a moment earlier */
        return STRATA_OK;
    /* Everything that can fail comes before the claim: a claimed slot must be published. */
    if (o->payload && o->hdr_len + o->len <= SM_SLOT_INLINE) {
        rc = sm_put_payload(o, small, UINT32_MAX);
        if (rc != STRATA_OK)
            return rc;
        inline_data = small;
    } else if (o->hdr_len + o->len > SM_SLOT_INLINE) {
        if (o->len > m->seg.geometry.cell_data)
            return STRATA_ERR_ARG;
        cell = sm_cell_get(m, &index);
        if (!cell)
            return sm_room_wanted(p, SM_WANTS_CELL);
        rc = sm_put_payload(o, cell->data, p->movs_min);
        if (rc != STRATA_OK)
            return rc;
        flags = SM_WORD_DATA;
    }
    slot = sm_queue_claim(&p->header->tail, p->slots, p->n_slots, p->my_index, &full);
    if (!slot)
        return sm_room_wanted(p, SM_WANTS_SLOT);
    slot->word = sm_word(kind << 16 | flags, o->hdr_len, o->len);
    sm_copy_small(slot->bytes, o->hdr, o->hdr_len);
    if (cell) {
        slot->cell = index;
        m->cell_to[index] = p->ep.rank;
        atomic_store_explicit(&cell->in_use, 1, memory_order_relaxed); /* made visible by the publish */
        m->count.cell++;
    } else if (o->len) {
        memcpy(slot->bytes + o->hdr_len, inline_data, o->len);
    }
    sm_queue_publish(slot, full);
    m->count.queue++;
    sm_send_wake(p);
    return STRATA_OK;
}

/* The one decision: the ring that is granted, if it takes that length, else the shared queue. */
static int sm_send_any(struct sm_peer *p, enum st_am am, const struct outgoing *o)
{
    struct st_btl *btl = p->ep.btl;
    /* Acquire: pairs with the receiver's release of the grant; the ring is ready to be used. */
    uint32_t grant = atomic_load_explicit(p->grant, memory_order_acquire);
    int rc = STRATA_OK;

    if (ST_UNLIKELY(grant != p->hot.word || grant == ST_HOT_NONE))
        rc = sm_grant_look(p, grant);
    if (ST_UNLIKELY(rc != STRATA_OK))
        ;
    else if (ST_LIKELY(p->hot.word != ST_HOT_NONE && o->len <= p->max_send))
        rc = sm_ring_send(p, (uint32_t)am, o);
    else
        rc = sm_queue_send(p, (uint32_t)am, o);
    if (ST_LIKELY(rc == STRATA_OK)) {
        btl->messages_sent++;
        btl->bytes_sent += o->len;
    } else if (rc == STRATA_ERR_AGAIN) {
        sm_module(btl)->count.again++;
    }
    return rc;
}

/* Messages that do not go by one line of a ring. The arguments of sm_send, so that it is a jump there. */
static __attribute__((noinline)) int sm_send_flat(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                  uint32_t hdr_len, const void *data, uint32_t len)
{
    struct outgoing o = {.hdr = hdr, .data = data, .payload = NULL, .hdr_len = hdr_len, .len = len};

    return sm_send_any(sm_peer(ep), am, &o);
}

static __attribute__((noinline)) int sm_send_woken(struct sm_peer *p)
{
    sm_wake_peer(p);
    return STRATA_OK;
}

/* A message that fits one line of a ring with room is sent here, without a call; all else by sm_send_flat. */
int sm_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len)
{
    struct sm_peer *p = sm_peer(ep);
    /* Acquire: pairs with the receiver's release of the grant; the ring is ready to be used. */
    uint32_t grant = atomic_load_explicit(p->grant, memory_order_acquire);
    struct sm_desc *d = p->tx.next;

    if (ST_UNLIKELY(grant != p->hot.word) || hdr_len + len > SM_DESC_INLINE || ST_UNLIKELY(p->tx.left == 0))
        return sm_send_flat(ep, am, hdr, hdr_len, data, len);
    sm_copy_small(d->bytes, hdr, hdr_len);
    sm_copy_small(d->bytes + hdr_len, data, len);
    sm_ring_publish(&p->tx, d, sm_word((uint32_t)am << 16, hdr_len, len));
    ep->btl->messages_sent++;
    ep->btl->bytes_sent += len;
    if (ST_UNLIKELY(sm_asleep(p)))
        return sm_send_woken(p);
    return STRATA_OK;
}

int sm_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload)
{
    struct outgoing o = {.hdr = hdr, .payload = payload, .hdr_len = hdr_len, .len = (uint32_t)payload->length};
    const void *flat = st_payload_contiguous(payload);

    if (flat) {
        o.data = flat;
        o.payload = NULL;
    }
    return sm_send_any(sm_peer(ep), am, &o);
}

int sm_send_room(struct sm_peer *p)
{
    uint32_t grant = atomic_load_explicit(p->grant, memory_order_acquire);
    int rc = STRATA_OK;

    if (ST_UNLIKELY(grant != p->hot.word || grant == ST_HOT_NONE))
        rc = sm_grant_look(p, grant);
    if (rc != STRATA_OK)
        return rc;
    if (ST_LIKELY(p->hot.word != ST_HOT_NONE))
        return sm_ring_claim(&p->tx) ? STRATA_OK : sm_room_wanted(p, SM_WANTS_RING);
    return sm_queue_has_room(&p->header->tail, p->slots, p->n_slots) ? STRATA_OK : sm_room_wanted(p, SM_WANTS_SLOT);
}

int sm_send_ctl(struct sm_peer *p, enum sm_ctl kind, const void *what, uint32_t len)
{
    struct outgoing o = {.hdr = NULL, .data = what, .payload = NULL, .hdr_len = 0, .len = len};
    char why[160]; /* nobody asks: what control messages are for can wait, or is over */

    if (p->failed || p->gone)
        return STRATA_ERR_PEER;
    if (p->my_index == SM_DIR_NONE && sm_enter(p, 0, why, sizeof why) != STRATA_OK)
        return p->gone || atomic_load_explicit(&p->header->closing, memory_order_relaxed) ? STRATA_ERR_PEER
                                                                                          : STRATA_ERR_AGAIN;
    return sm_queue_send(p, (uint32_t)kind | SM_WORD_CTL >> 16, &o);
}
