/* Receiving by a ring: the hot path. */
#include "data/completion.h"
#include "module.h"

#define UNLOOKED_MASK 7u /* polls with messages of rings, between two looks at the CQ */
#define ALSO_MASK     7u /* likewise of the first ring, between two looks at the others and the CQ */

#define MOST      16u /* messages of one ring in one poll, so that others have their turn */
#define MANY      4u  /* messages of one ring in one poll after which all else is looked at soon: reorder_limit.c */
#define MANY_RARE 8u  /* polls until then */

static inline void ring_advance_in(struct ib_ring_in *r, uint32_t k)
{
    r->flag -= (size_t)r->size * k;
    if (ST_UNLIKELY(r->flag == r->bottom)) {
        r->flag += (size_t)r->size * r->order.n;
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

/* Slots may be used again. */
static inline void ring_free(struct ib_ring_in *r, uint32_t k)
{
    struct ib_peer *p = r->peer;

    p->owed_slots = (uint8_t)(p->owed_slots + k);
    if (ST_UNLIKELY(p->owed_slots >= r->window))
        ib_owe(p);
}

/* Delivers the message of len bytes at `at`, of k slots. */
static inline __attribute__((always_inline)) void ring_deliver(struct ib_module *m, struct ib_ring_in *r, uint64_t head,
                                                               enum st_am am, const char *at, uint32_t hdr_len,
                                                               uint32_t len, uint32_t k)
{
    struct ib_peer *p = r->peer;

    r->frag.hdr = at;
    r->frag.hdr_len = hdr_len;
    r->frag.data = at + hdr_len;
    r->frag.len = len - hdr_len;
    ring_advance_in(r, k);
    p->q[IB_HIGH].received++;
    if (head >> 16) {
        struct ib_head h;
        memcpy(&h, &head, sizeof h);
        ib_take_credits(p, &h);
    }
    st_btl_deliver(&m->btl, am, &r->frag);
}

/* The same for any message of `bytes` that ends at `end`; its slots are freed when it was handled. */
static void ring_deliver_any(struct ib_module *m, struct ib_ring_in *r, uint64_t head, char *end, uint32_t bytes,
                             uint32_t len)
{
    uint32_t left = (uint32_t)(r->flag - r->bottom) / r->size, k = ib_slots_of(bytes, r->size, left);

    ib_ring_take(&r->order, r->order.n - left, k);
    ring_deliver(m, r, head, (enum st_am)(uint8_t)head, end - bytes, (uint8_t)(head >> 8), len, k);
    if (r->detect == IB_DETECT_SEAL)
        ib_seal_clear(end, len);
    else
        ib_slots_clear(end, r->size, k);
    ring_free(r, ib_ring_free(&r->order, r->order.n - left, k));
}

/* Any message in the next slot. False: its turn has not come, or not all of it is there. */
static __attribute__((noinline)) bool ring_take_any(struct ib_module *m, struct ib_ring_in *r)
{
    char *end = (char *)(uintptr_t)r->flag + 1;
    uint64_t head, rest;
    uint32_t len, hdr_len;

    memcpy(&head, end - IB_FOOTER, sizeof head);
    memcpy(&rest, end - sizeof rest, sizeof rest);
    len = (uint16_t)rest;
    hdr_len = (uint8_t)(head >> 8);
    if (ib_ring_is_later(r, rest))
        return false;
    if (ST_UNLIKELY((uint8_t)head >= ST_AM_COUNT || hdr_len > ST_BTL_HDR_MAX || hdr_len > len || len > r->most)) {
        ring_broken(m, r);
        return false;
    }
    if (r->detect == IB_DETECT_SEAL && ib_slot_round(len) + IB_FOOTER > IB_LINE) {
        if (!ib_seal_whole(end, len, r->expect))
            return false;
        atomic_thread_fence(memory_order_acquire); /* the lines' last bytes were read before the rest is */
        ib_seal_open(end, len);
    }
    ring_deliver_any(m, r, head, end, ib_slot_bytes(len, r->detect == IB_DETECT_SEAL), len);
    return true;
}

/* The message in the next slot, whose flag is there. Most are one client's and have a header of one length. */
static inline __attribute__((always_inline)) bool ring_take(struct ib_module *m, struct ib_ring_in *r)
{
    const char *end = r->flag + 1;
    uint64_t head, rest;
    uint32_t len;

    memcpy(&head, end - IB_FOOTER, sizeof head);
    memcpy(&rest, end - sizeof rest, sizeof rest);
    len = (uint16_t)rest;
    if (ST_UNLIKELY((uint16_t)head != (IB_USUAL_AM | IB_USUAL_HDR << 8) || len - IB_USUAL_HDR > r->usual ||
                    (uint16_t)(rest >> 16) != (uint16_t)r->peer->q[IB_HIGH].received || r->order.held))
        return ring_take_any(m, r);
    ring_deliver(m, r, head, IB_USUAL_AM, end - IB_FOOTER - ib_slot_round(len), IB_USUAL_HDR, len, 1);
    ring_free(r, 1);
    return true;
}

static inline __attribute__((always_inline)) int ring_take_all(struct ib_module *m, struct ib_ring_in *r)
{
    uint32_t n = 0;

    m->poll.last = &r->peer->q[IB_HIGH];
    while (ring_take(m, r)) {
        n++;
        if (n == MOST || !ib_ring_is_flagged(r))
            break;
    }
    r->arrivals += n;
    if (ST_UNLIKELY(n >= MANY && m->poll.until > MANY_RARE))
        m->poll.until = MANY_RARE;
    return (int)n;
}

#define QUIET_A_ROUND 2u /* quiet rings that are looked at in a round */

/* A quiet ring has a message: it is looked at in every round again. */
static void ring_wakes(struct ib_eager *e, uint32_t i)
{
    struct ib_ring_in *r = e->polled[i];

    r->quiet = false;
    r->idle = 0;
    e->reorder = true;
    e->polled[i] = e->polled[e->n_lively];
    e->polled[e->n_lively++] = r;
}

static __attribute__((noinline)) int rings_poll_quiet(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    int n = 0;

    for (uint32_t k = 0; k < QUIET_A_ROUND && e->n_lively < e->n_polled; k++) {
        uint32_t i = ++e->turn;
        if (i < e->n_lively || i >= e->n_polled)
            i = e->turn = e->n_lively;
        struct ib_ring_in *r = e->polled[i];
        if (ib_ring_has_some(r)) {
            ring_wakes(e, i);
            n += ring_take_all(m, r);
        }
    }
    return n;
}

bool ib_rings_wait(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    bool some = false;

    for (uint32_t i = 0; i < e->n_polled; i++)
        if (ib_ring_has_some(e->polled[i])) {
            some = true;
            if (i >= e->n_lively)
                ring_wakes(e, i);
        }
    return some;
}

/* Those of every round, from the next one on. */
static __attribute__((noinline)) int rings_poll_circular(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    uint32_t start = e->turn++;
    int n = 0;

    for (uint32_t k = 0; k < e->n_lively; k++) {
        struct ib_ring_in *r = e->polled[(start + k) % e->n_lively];
        if (ib_ring_has_some(r))
            n += ring_take_all(m, r);
    }
    return n;
}

int ib_rings_poll(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    int n = 0;

    for (uint32_t i = 0; i < e->n_polled; i++) {
        struct ib_ring_in *r = e->polled[i];
        if (!ib_ring_has_some(r))
            continue;
        if (i >= e->n_lively)
            ring_wakes(e, i);
        n += ring_take_all(m, r);
    }
    return n;
}

static inline __attribute__((always_inline)) int rings_poll(struct ib_module *m)
{
    int n = 0;

    if (ST_UNLIKELY(m->dev.par->eager_rdma_order == IB_POLL_CIRCULAR && m->eager.n_lively > 1))
        n = rings_poll_circular(m);
    else
        for (uint32_t i = 0; i < m->eager.n_lively; i++)
            if (ib_ring_is_flagged(m->eager.polled[i]))
                n += ring_take_all(m, m->eager.polled[i]);
    if (ST_UNLIKELY(m->eager.n_lively < m->eager.n_polled))
        n += rings_poll_quiet(m);
    return n;
}

/* A whole round; `first` messages have come by the first ring. */
static __attribute__((noinline)) int rings_progress(struct ib_module *m, int first)
{
    int n = first + rings_poll(m);

    if (m->poll.hot && (first || n == 0 || (++m->eager.unlooked & UNLOOKED_MASK) == 0))
        n += ib_poll_high(m);
    if (ST_UNLIKELY(--m->poll.until == 0))
        n = ib_progress_rest(m, n);
    return n;
}

/* The first ring has a message. */
static __attribute__((noinline)) int rings_progress_first(struct ib_module *m)
{
    int n = ring_take_all(m, m->eager.first);

    if (ST_UNLIKELY(n == 0 || ((m->poll.until - 1) & ALSO_MASK) == 0))
        return rings_progress(m, n);
    m->poll.until--;
    return n;
}

int ib_progress_eager(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);

    if (ib_ring_is_flagged(m->eager.first))
        return rings_progress_first(m);
    return m->eager.n_polled ? rings_progress(m, 0) : ib_progress(btl);
}

__attribute__((noinline)) void ib_ring_before(struct ib_module *m, struct ib_ring_in *r)
{
    while (ib_ring_is_flagged(r) && ring_take_all(m, r) == (int)MOST)
        continue;
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
    if (!ring_take_any(m, r))
        ib_peer_broken(p, "a write to its ring of eager RDMA has left no message there");
}
