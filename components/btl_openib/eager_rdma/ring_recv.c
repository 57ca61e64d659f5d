/* Receiving by a ring: the hot path. */
#include <stdatomic.h>
#include "data/completion.h"
#include "module.h"

#define MANY      4u /* messages of one ring in one poll after which all else is looked at soon: reorder_limit.c */
#define MANY_RARE 8u /* polls until then */

static inline bool ring_has_flag(const struct ib_ring_in *r)
{
    /* Acquire: pairs with the device, which writes this byte last, or of its line. */
    return atomic_load_explicit((const _Atomic(uint8_t) *)(const void *)r->flag, memory_order_acquire) == r->expect;
}

static inline void ring_advance_in(struct ib_ring_in *r)
{
    r->flag += r->size;
    if (ST_UNLIKELY(++r->order.head == r->order.n)) {
        r->order.head = 0;
        r->flag -= (size_t)r->size * r->order.n;
        r->expect = (uint8_t)(ib_lap_flag(0) + ib_lap_flag(1) - r->expect);
    }
}

/* Nothing of it is read any more. */
static __attribute__((noinline)) void ring_broken(struct ib_module *m, struct ib_ring_in *r)
{
    r->peer->q[IB_HIGH].ring = NULL;
    st_hot_broken(&m->eager.hot, r->place);
    ib_peer_broken(r->peer, "a message in its ring of eager RDMA makes no sense");
}

/* The slot may be used again. */
static inline void ring_free(struct ib_ring_in *r, uint32_t slot)
{
    struct ib_peer *p = r->peer;

    p->owed_slots = (uint8_t)(p->owed_slots + ib_ring_free(&r->order, slot));
    if (ST_UNLIKELY(p->owed_slots >= r->window))
        ib_owe(p);
}

/* The message in the next slot, whose flag is there. False: its turn has not come, or not all of it is there. */
static inline bool ring_take(struct ib_module *m, struct ib_ring_in *r)
{
    struct ib_peer *p = r->peer;
    struct ib_qp *q = &p->q[IB_HIGH];
    char *end = (char *)(uintptr_t)r->flag + 1, *at;
    uint32_t slot = r->order.head, len, hdr_len;
    bool sealed = false;
    uint64_t head, rest;

    memcpy(&head, end - IB_FOOTER, sizeof head);
    memcpy(&rest, end - sizeof rest, sizeof rest);
    len = (uint16_t)rest;
    hdr_len = (uint8_t)(head >> 8);
    if ((int16_t)(uint16_t)((uint32_t)(rest >> 16) - q->received) > 0)
        return false;
    if (ST_UNLIKELY((uint8_t)head >= ST_AM_COUNT || hdr_len > ST_BTL_HDR_MAX || hdr_len > len || len > r->most)) {
        ring_broken(m, r);
        return false;
    }
    at = end - IB_FOOTER - ib_slot_round(len);
    if (r->detect == IB_DETECT_SEAL && ib_slot_round(len) + IB_FOOTER > IB_LINE) {
        if (!ib_seal_whole(end, len, r->expect))
            return false;
        atomic_thread_fence(memory_order_acquire); /* the lines' last bytes were read before the rest is */
        ib_seal_open(end, len);
        at = end - ib_slot_bytes(len, true);
        sealed = true;
    }
    ring_advance_in(r);
    q->received++;
    if (head >> 16) {
        struct ib_head h;
        memcpy(&h, &head, sizeof h);
        ib_take_credits(p, &h);
    }
    m->poll.frag.hdr = at;
    m->poll.frag.hdr_len = hdr_len;
    m->poll.frag.data = at + hdr_len;
    m->poll.frag.len = len - hdr_len;
    m->poll.frag.rank = p->ep.rank;
    st_btl_deliver(&m->btl, (enum st_am)(uint8_t)head, &m->poll.frag);
    if (sealed)
        ib_seal_clear(end, len);
    ring_free(r, slot);
    return true;
}

static __attribute__((noinline)) int ring_take_all(struct ib_module *m, struct ib_ring_in *r)
{
    uint32_t n = 0;

    while (n < r->order.n && r->peer && ring_has_flag(r) && ring_take(m, r))
        n++;
    r->arrivals += n;
    if (ST_UNLIKELY(n >= MANY && m->poll.until > MANY_RARE))
        m->poll.until = MANY_RARE;
    return (int)n;
}

int ib_rings_poll(struct ib_module *m)
{
    int n = 0;

    for (uint32_t i = 0; i < m->eager.n_polled; i++)
        if (ST_UNLIKELY(ring_has_flag(m->eager.polled[i])))
            n += ring_take_all(m, m->eager.polled[i]);
    return n;
}

__attribute__((noinline)) void ib_ring_before(struct ib_module *m, struct ib_ring_in *r)
{
    if (r->detect != IB_DETECT_IMM)
        (void)ring_take_all(m, r);
}

void ib_ring_completion(struct ib_module *m, struct ib_peer *p)
{
    struct ib_ring_in *r = p->q[IB_HIGH].ring;

    if (!r || r->detect != IB_DETECT_IMM) {
        ib_peer_broken(p, "it has written to a ring of eager RDMA that it does not have");
        return;
    }
    if (++p->owed[IB_HIGH] >= p->q[IB_HIGH].window)
        ib_owe(p);
    r->arrivals++;
    if (!ring_take(m, r))
        ib_peer_broken(p, "a write to its ring of eager RDMA has left no message there");
}
