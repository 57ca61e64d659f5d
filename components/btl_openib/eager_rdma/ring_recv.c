/* Receiving by a ring: the hot path. */
#include "data/completion.h"
#include "eager_rdma/kept.h"
#include "module.h"

#define UNLOOKED_MASK 7u /* rounds with messages of rings, between two looks at the CQ */

#define FIRST 32u /* messages of the first ring between two whole rounds */
#define MANY  4u  /* messages of one ring in one round after which all else is looked at soon: credits.h */

/* ---- the plan ---- */

/* How many messages of one line may follow that differ in nothing but length and number. The last slot is not among
 * theirs, nor a number that is less than the one before. Messages of the first ring are polls as well. */
static void ring_plan(struct ib_ring_in *r, uint32_t most)
{
    const struct ib_qp *q = &r->peer->q[IB_HIGH];
    uint32_t n = most, numbers = UINT16_MAX - (uint16_t)q->received;

    if (n > numbers)
        n = numbers;
    if (n >= r->window) /* fewer than a message of its own would return */
        n = r->window - 1u;
    if (ST_UNLIKELY(n * r->size >= (size_t)(r->flag - r->bottom)))
        n = (uint32_t)(r->flag - r->bottom) / (uint32_t)r->size - 1;
    if (r->order.held)
        n = 0;
    r->next = ib_footer_word(r->expect, q->received, ST_AM_FREQUENT);
    r->plan = n;
}

/* ---- taking a message ---- */

/* Nothing of it is read any more. */
static void ring_broken(struct ib_module *m, struct ib_ring_in *r, const char *why)
{
    r->peer->q[IB_HIGH].ring = NULL;
    st_hot_broken(&m->eager.hot, r->place);
    ib_peer_broken(r->peer, why);
}

/* Messages that were sent before the one with this word and have not been received. The ring is settled. */
static inline uint16_t ring_ahead(const struct ib_ring_in *r, uint64_t word)
{
    return (uint16_t)((uint32_t)(word >> IB_FOOTER_NUMBER_AT) - r->peer->q[IB_HIGH].received);
}

/* The most that ring_ahead may be: such messages came by send and receive, and each is in a receive buffer. A number
 * that is behind looks like one that is further ahead. */
static inline uint32_t ring_most_ahead(const struct ib_module *m, const struct ib_ring_in *r)
{
    const struct ib_queue *queue = &m->q[IB_HIGH];
    uint32_t n = queue->srq ? queue->posted : r->peer->q[IB_HIGH].receives;

    return n < INT16_MAX ? n : INT16_MAX;
}

/* Whether the message with this word may be one that the peer has sent. */
static inline bool ring_makes_sense(const struct ib_ring_in *r, uint64_t word)
{
    uint32_t len = (uint16_t)word, hdr_len = (uint8_t)(word >> IB_FOOTER_HDR_AT);

    return (uint8_t)(word >> IB_FOOTER_AM_AT) < ST_AM_COUNT && hdr_len <= ST_BTL_HDR_MAX && hdr_len <= len &&
           len <= r->most;
}

/* Whether displaced bytes have to be put back before it is delivered. */
static inline bool ring_is_sealed(const struct ib_ring_in *r, uint32_t len)
{
    return r->detect == IB_DETECT_SEAL && ib_slot_body(len) + IB_FOOTER > IB_LINE;
}

/* Whether there is something to do about the next slot, which is flagged. A message that waits for one before it, or
 * for its own lines, is none: a completion wakes the sleeper for the one, and the sleep is too short for the other. */
static bool ring_is_due(struct ib_module *m, struct ib_ring_in *r)
{
    uint64_t word = ib_ring_word(r);
    uint16_t ahead;

    ib_ring_settle(m, r);
    ahead = ring_ahead(r, word);
    if (ahead)
        return ahead > ring_most_ahead(m, r);
    return !ring_makes_sense(r, word) || !ring_is_sealed(r, (uint16_t)word) ||
           ib_seal_whole(r->flag + 1, (uint16_t)word, r->expect);
}

static __attribute__((noinline)) void ring_returns(const struct ib_ring_in *r, uint64_t owed)
{
    const struct ib_head h = ib_footer_head(owed);

    ib_take_credits(r->peer, &h);
}

static void ring_advance_in(struct ib_ring_in *r, uint32_t k)
{
    r->flag -= r->size * k;
    if (ST_UNLIKELY(r->flag == r->bottom)) {
        r->flag += r->size * r->order.n;
        r->expect = (uint8_t)(ib_lap_flag(0) + ib_lap_flag(1) - r->expect);
    }
}

/* Delivers a message that ends at `end`; its slots are freed when it was handled, or when its client releases it.
 * False: it takes slots of a message that is kept. */
static bool ring_deliver_any(struct ib_module *m, struct ib_ring_in *r, char *end, uint64_t word)
{
    uint32_t left = (uint32_t)(r->flag - r->bottom) / (uint32_t)r->size, len = (uint16_t)word;
    uint32_t bytes = ib_slot_bytes(len, r->detect == IB_DETECT_SEAL), k = ib_slots_of(bytes, (uint32_t)r->size, left);
    struct st_frag frag = r->frag;
    struct ib_taking taking = {.ring = r, .slot = r->order.n - left, .k = k, .len = len};
    uint64_t owed;

    if (ST_UNLIKELY(r->order.held + k > r->order.n))
        return false;
    frag.hdr_len = (uint8_t)(word >> IB_FOOTER_HDR_AT);
    frag.hdr = end - bytes;
    frag.data = end - bytes + frag.hdr_len;
    frag.len = len - frag.hdr_len;
    taking.data = frag.data;
    taking.data_len = frag.len;
    memcpy(&owed, end - IB_FOOTER, sizeof owed);
    ib_ring_take(&r->order, taking.slot, k);
    ring_advance_in(r, k);
    r->peer->q[IB_HIGH].received++;
    if (owed)
        ring_returns(r, owed);
    m->eager.taking = &taking;
    st_btl_deliver(&m->btl, (enum st_am)(uint8_t)(word >> IB_FOOTER_AM_AT), &frag);
    m->eager.taking = NULL;
    if (ST_LIKELY(!taking.kept))
        ib_ring_return(r, taking.slot, end, len, k);
    if (ST_UNLIKELY(r->order.held))
        ib_kept_trim(m, r);
    return true;
}

/* Any message in the next slot; the ring is settled. False: its turn has not come, or not all of it is there. */
static __attribute__((noinline)) bool ring_take_any(struct ib_module *m, struct ib_ring_in *r)
{
    char *end = (char *)(uintptr_t)r->flag + 1;
    uint64_t word = ib_ring_word(r);
    uint32_t len = (uint16_t)word;
    uint16_t ahead = ring_ahead(r, word);

    if (ahead) { /* a message that was sent before it has not been received */
        if (ST_UNLIKELY(ahead > ring_most_ahead(m, r)))
            ring_broken(m, r, "the number of a message in its ring of eager RDMA makes no sense");
        return false;
    }
    if (ST_UNLIKELY(!ring_makes_sense(r, word))) {
        ring_broken(m, r, "a message in its ring of eager RDMA makes no sense");
        return false;
    }
    if (ring_is_sealed(r, len)) {
        if (!ib_seal_whole(end, len, r->expect))
            return false;
        atomic_thread_fence(memory_order_acquire); /* the lines' last bytes were read before the rest is */
        ib_seal_open(end, len);
    }
    if (ST_LIKELY(ring_deliver_any(m, r, end, word)))
        return true;
    ring_broken(m, r, IB_RING_OVERRUN);
    return false;
}

/* Bytes of data of the message of one line in the next slot; if there is another one or none, or no plan, more than
 * IB_LINE_DATA. */
static inline uint64_t ring_line(const struct ib_ring_in *r)
{
    return ST_LIKELY(r->plan) ? ib_ring_word(r) - r->next : UINT64_MAX;
}

/* Credits and slots that the message returns, as its footer has them. */
static inline uint64_t ring_line_owed(const struct ib_ring_in *r)
{
    uint64_t owed;

    memcpy(&owed, r->flag + 1 - IB_FOOTER, sizeof owed);
    return owed;
}

/* Takes it. It is counted when it was handled: its slot is free then. */
static inline __attribute__((always_inline)) void ring_take_line(struct ib_module *m, struct ib_ring_in *r,
                                                                 uint64_t len)
{
    const char *line = (const char *)(uintptr_t)ib_one_word((uintptr_t)r->flag + 1 - IB_LINE);

    r->frag.hdr = line;
    r->frag.data = line + IB_USUAL_HDR;
    r->frag.len = (uint32_t)len;
    r->flag -= r->size;
    r->next += UINT64_C(1) << IB_FOOTER_NUMBER_AT;
    r->plan--;
    st_btl_deliver(&m->btl, ST_AM_FREQUENT, &r->frag);
    r->taken++;
}

/* ---- rounds ---- */

static int ring_take_all(struct ib_module *m, struct ib_ring_in *r)
{
    uint32_t n = 0;

    m->poll.last = &r->peer->q[IB_HIGH];
    if (r->plan == 0) {
        ib_ring_settle(m, r);
        ring_plan(r, r == m->eager.first ? FIRST : IB_RING_MOST);
    }
    for (; n < IB_RING_MOST && ib_ring_is_flagged(r); n++) {
        uint64_t len = ring_line(r);
        if (len <= IB_LINE_DATA) {
            uint64_t owed = ring_line_owed(r);
            if (owed)
                ring_returns(r, owed);
            ring_take_line(m, r, len);
            continue;
        }
        ib_ring_settle(m, r);
        if (!ring_take_any(m, r))
            break;
        r->arrivals++;
        ring_plan(r, IB_RING_MOST);
    }
    if (ST_UNLIKELY(n >= MANY && m->poll.until > IB_RING_RARE))
        m->poll.until = IB_RING_RARE;
    return (int)n;
}

#define QUIET_A_ROUND 2u /* quiet rings that are looked at in a round */

/* A quiet ring has a message: it is looked at in every round, at once. */
static void ring_wakes(struct ib_eager *e, uint32_t i)
{
    struct ib_ring_in *r = e->polled[i];

    ib_ring_is_lively(e, r);
    e->polled[i] = e->polled[e->n_lively];
    e->polled[e->n_lively++] = r;
}

static __attribute__((noinline)) int rings_poll_quiet(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    int n = 0;

    for (uint32_t k = 0; k < QUIET_A_ROUND && e->n_lively < e->n_polled; k++) {
        uint32_t i = ++e->quiet_at;
        if (i < e->n_lively || i >= e->n_polled)
            i = e->quiet_at = e->n_lively;
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
        if (ib_ring_has_some(e->polled[i]) && ring_is_due(m, e->polled[i])) {
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

/* A whole round; `first` messages have come by the first ring before it. The plan of the first ring begins anew. */
static __attribute__((noinline)) int rings_progress(struct ib_module *m, int first)
{
    const struct ib_ring_in *was = m->eager.first;
    bool due = first || (was->peer && was->plan == 0);
    int n = first + rings_poll(m);
    struct ib_ring_in *r;

    if (m->poll.hot && (due || n == 0 || (++m->eager.unlooked & UNLOOKED_MASK) == 0))
        n += ib_poll_high(m);
    if (ST_UNLIKELY(--m->poll.until == 0))
        n = ib_progress_rest(m, n);
    r = m->eager.first;
    if (r->peer && r->plan == 0) {
        ib_ring_settle(m, r);
        ring_plan(r, FIRST);
    }
    if (r->plan >= m->poll.until)
        r->plan = m->poll.until - 1;
    return n;
}

/* The first ring has no message of one line that returns nothing, or no plan. Its other messages count as such. */
static __attribute__((noinline)) int rings_progress_other(struct ib_module *m)
{
    struct ib_ring_in *r = m->eager.first;
    uint32_t left = r->plan;
    int n = 0;

    if (m->eager.n_polled == 0)
        return ib_progress(&m->btl);
    if (left > 1 && ib_ring_is_flagged(r)) {
        n = ring_take_all(m, r);
        if (n > 0 && m->poll.until > 1) {
            m->poll.until--;
            if (r->plan >= left)
                r->plan = left - 1;
            return n;
        }
    }
    return rings_progress(m, n);
}

int ib_progress_eager(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);
    struct ib_ring_in *r = m->eager.first;
    uint64_t len = ring_line(r);

    if (ST_UNLIKELY(len > IB_LINE_DATA || ring_line_owed(r)))
        return rings_progress_other(m);
    ring_take_line(m, r, len);
    return 1;
}

/* Without a plan at the end: the message from the CQ has the next number. The slots hold all that is older: further
 * messages, which a peer may write as fast as they are taken, have their turn later. */
__attribute__((noinline)) void ib_ring_before(struct ib_module *m, struct ib_ring_in *r)
{
    ib_ring_settle(m, r);
    for (uint32_t n = 0; n < r->order.n && ib_ring_has_some(r); n += IB_RING_MOST)
        if (ring_take_all(m, r) != (int)IB_RING_MOST)
            break;
    ib_ring_settle(m, r);
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
    if (!ib_ring_is_flagged(r) || !ring_take_any(m, r)) /* what it left there before is of another lap */
        ib_peer_broken(p, "a write to its ring of eager RDMA has left no message there");
}
