/* Receiving: rings in the order of the polling set, then the shared queue, then what is slow. */
#include "progress.h"

#include <strata/sdk/clock.h>

#include "area.h"
#include "attach.h"
#include "learn.h"
#include "liveness.h"
#include "peer.h"
#include "polling.h"
#include "ring_inl.h"
#include "senders.h"
#include "single_copy.h"
#include "wake.h"

#define AHEAD         6u /* descriptors fetched ahead in a row of messages */
#define QUEUE_BATCH   16u
#define EXPECT_RINGS  2u    /* only the hottest are worth fetching ahead for */
#define SLOW_EVERY    1024u /* empty polls between looks at the socket and at stuck claims; a power of two */
#define COLLECT_EVERY 64u   /* such looks between looks at who has ended; a power of two */

static inline void sm_hand_over(struct sm_module *m, struct st_frag *f, uint64_t word)
{
    uint32_t am = sm_word_kind(word);

    if (ST_LIKELY(am < ST_AM_COUNT && m->btl.am[am].fn))
        st_btl_deliver(&m->btl, (enum st_am)am, f);
    else
        sm_peer_violation(m, f->rank, "a message for nobody");
}

/* A long fragment of a ring. One in SM_TIMED_EVERY is timed, in a trial each: learn.h. */
static __attribute__((noinline)) void sm_hand_over_long(struct sm_module *m, const struct sm_ring_rx *rx,
                                                        struct st_frag *f, uint64_t word)
{
    const struct sm_peer *p = m->senders[rx->local].peer;
    enum sm_distance d = p ? (enum sm_distance)p->distance : SM_ANY;
    uint32_t bytes = f->len;
    uint64_t begin;

    sm_costs_moved(m, d, bytes, true);
    if (m->long_fragments++ % SM_TIMED_EVERY && !m->costs[d].tries) {
        sm_hand_over(m, f, word);
        return;
    }
    if (p && p->connected)
        sm_fill_told(m, p);
    begin = st_now_ns();
    sm_hand_over(m, f, word);
    sm_ring_took(m, d, bytes, st_now_ns() - begin);
}

/* A ring's sender has said something that cannot be: the ring is not polled again. */
static __attribute__((noinline)) void sm_ring_violation(struct sm_module *m, uint32_t ring, const char *what)
{
    sm_ring_broken(m, ring);
    sm_peer_violation(m, m->rings[ring].rank, what);
}

/* Slots or ring space were given back: a sender may sleep until then. */
static inline void room_made(struct sm_module *m)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (ST_UNLIKELY(atomic_load_explicit(&m->header->starved, memory_order_relaxed) != 0))
        sm_room_made_slow(m);
}

/* Reads up to SM_RING_BATCH messages. Returns how many. */
static __attribute__((noinline)) uint32_t sm_ring_drain(struct sm_module *m, struct sm_ring_rx *rx)
{
    uint32_t n = 0, mark = (uint32_t)m->btl.messages_sent; /* what callbacks send counts as sent since */

    do {
        uint64_t word;
        const struct sm_desc *d = rx->next;
        struct st_frag f;

        if (!sm_ring_poll(rx, &word))
            break;
        /* Of a row of messages the next ones are there already: have their lines come over while this one is handled.
         * Not after a single one: its successor's line is still to be written. Measured: 1.4 times the rate. */
        if (n >= 1)
            __builtin_prefetch((const char *)d + AHEAD * sizeof(*d));
        /* `word` is our copy: what is checked here is what is used. */
        f.hdr_len = sm_word_hdr_len(word);
        f.len = sm_word_len(word);
        f.hdr = d->bytes;
        f.rank = rx->rank;
        f.btl = &m->btl;
        if (!(word & (SM_WORD_DATA | SM_WORD_BYE | SM_WORD_AREA))) {
            if (ST_UNLIKELY((uint64_t)f.hdr_len + f.len > SM_DESC_INLINE)) {
                sm_ring_violation(m, rx->index, "an inline message longer than its line");
                return n;
            }
            f.data = d->bytes + f.hdr_len;
        } else if (ST_UNLIKELY(word & SM_WORD_AREA)) {
            sm_ring_advance(rx);
            n++;
            if (!sm_area_read(m, rx, word)) {
                sm_ring_violation(m, rx->index, "a data area that was not offered");
                return n;
            }
            room_made(m);
            continue;
        } else if (ST_UNLIKELY(word & SM_WORD_BYE)) {
            sm_ring_advance(rx);
            sm_ring_publish_consumed(rx);
            sm_ring_left(m, rx->index);
            room_made(m);
            return n + 1;
        } else {
            f.data = f.hdr_len <= ST_BTL_HDR_MAX ? sm_ring_data_at(rx, word) : NULL;
            if (ST_UNLIKELY(!f.data)) {
                sm_ring_violation(m, rx->index, "a message longer than its ring");
                return n;
            }
        }
        if (ST_UNLIKELY(f.len >= SM_RING_TIMED))
            sm_hand_over_long(m, rx, &f, word);
        else
            sm_hand_over(m, &f, word);
        sm_ring_advance(rx);
        if (ST_UNLIKELY(sm_ring_quarter(rx))) {
            sm_ring_publish_consumed(rx);
            room_made(m);
        }
        n++;
    } while (n < SM_RING_BATCH);
    rx->sent_mark = mark;
    rx->arrivals += n;
    if (ST_UNLIKELY(rx->arrivals >= SM_REPORT_EVERY))
        sm_ring_report(m, rx->index);
    return n;
}

/* One message of the shared queue: checked, handed over, its cell given back. */
static void sm_queue_message(struct sm_module *m, struct sm_slot *s, uint32_t src)
{
    uint64_t word = *(volatile uint64_t *)&s->word; /* once: the producer could still write it */
    struct st_frag f = {.hdr = s->bytes, .hdr_len = sm_word_hdr_len(word), .len = sm_word_len(word), .btl = &m->btl};
    struct sm_cell *cell = NULL;

    f.rank = sm_rank_at(m, src);
    if (word & SM_WORD_DATA) {
        struct sm_peer *p = sm_peer_at(m, src);
        uint32_t index = *(volatile uint32_t *)&s->cell;
        struct sm_layout at;

        if (!p)
            return; /* reported by sm_peer_at */
        if (f.hdr_len > ST_BTL_HDR_MAX || index >= p->geometry.n_cells || f.len > p->geometry.cell_data) {
            sm_peer_violation(m, f.rank, "a cell that does not exist or a length beyond it");
            return;
        }
        sm_layout_make(&p->geometry, &at);
        cell = sm_cell(p->base, &at, index);
        f.data = cell->data;
    } else {
        if ((uint64_t)f.hdr_len + f.len > SM_SLOT_INLINE || f.hdr_len > ST_BTL_HDR_MAX) {
            sm_peer_violation(m, f.rank, "an inline message longer than its slot");
            return;
        }
        f.data = s->bytes + f.hdr_len;
    }
    if (word & SM_WORD_CTL)
        sm_control(m, src, word, &f);
    else
        sm_hand_over(m, &f, word);
    if (cell) /* release: pairs with the acquire in cell_get */
        atomic_store_explicit(&cell->in_use, 0, memory_order_release);
}

static __attribute__((noinline)) uint32_t sm_queue_drain(struct sm_module *m)
{
    uint32_t n = 0, src;
    struct sm_slot *s;

    while (n < QUEUE_BATCH && (s = sm_queue_peek(&m->queue, &src)) != NULL) {
        if (ST_UNLIKELY(!sm_known(m, src))) {
            st_log(m->btl.context, ST_LOG_WARN, "btl_sm",
                   "a message from entry %u of the directory, which names no peer, was dropped", src);
            m->count.violations++;
        } else {
            bool ctl = s->word & SM_WORD_CTL;
            uint32_t len = sm_word_len(s->word);
            if ((uint64_t)len + sm_word_hdr_len(s->word) <= SM_DESC_INLINE)
                len = 0;
            sm_queue_message(m, s, src);
            if (!ctl)
                sm_shared_arrival(m, src, len);
        }
        sm_queue_consume(&m->queue);
        n++;
    }
    room_made(m);
    return n;
}

/* Looked after every SLOW_EVERY empty polls: peers that wait for our segment, claims of dead producers, those who have
 * left. */
static __attribute__((noinline)) void sm_slow_look(struct sm_module *m)
{
    sm_socket_serve(m);
    sm_queue_unstick(m);
    if ((m->idle & (SLOW_EVERY * COLLECT_EVERY - 1)) == 0)
        m->collect = true;
    sm_tidy(m);
    sm_look_for_ended(m);
}

static __attribute__((noinline)) uint32_t sm_slow_work(struct sm_module *m, bool idle)
{
    if (idle && m->n_arrivals)
        sm_arrivals_tell(m);
    if (m->hot.n_revoked)
        sm_nudge(m);
    if (m->n_held)
        sm_rings_release(m);
    sm_costs_tell(m);
    return (uint32_t)sm_copy_progress(m);
}

int sm_progress(struct st_btl *btl)
{
    struct sm_module *m = sm_module(btl);
    uint32_t n = 0, src;

    for (uint32_t i = 0; i < m->n_order; i++) {
        struct sm_ring_rx *rx = m->order[i];
        uint64_t word;
        /* Fetching ahead pays for an answer to something sent; of a stream, it would take lines from under the sender.
         */
        if (sm_ring_poll(rx, &word))
            n += sm_ring_drain(m, rx);
        else if (rx->expect && i < EXPECT_RINGS && rx->sent_mark != (uint32_t)m->btl.messages_sent)
            sm_ring_expect(rx);
    }
    if (ST_UNLIKELY(sm_queue_peek(&m->queue, &src) != NULL))
        n += sm_queue_drain(m);
    if (ST_UNLIKELY(m->work))
        n += sm_slow_work(m, n == 0);
    if (n == 0 && ST_UNLIKELY((++m->idle & (SLOW_EVERY - 1)) == 0))
        sm_slow_look(m);
    return (int)n;
}
