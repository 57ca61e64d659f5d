/* The queue that all senders share: bounded, many producers, one consumer (the owner of the segment).
 *
 * Each slot has a state word: lap << 32 | producer << 8 | status. A slot of lap L is EMPTY, CLAIMED by a producer,
 * FULL, and then EMPTY of lap L + 1; memory of zeros is an empty queue, so that nothing is touched to make one. A
 * producer claims by compare-and-swap on the slot, and only then moves `tail` past it: a producer that dies leaves a
 * claim that names it, and the consumer can take the slot back (sm_queue_skip). `tail` is a hint between producers; the
 * consumer trusts its own position only. */
#ifndef SM_QUEUE_H
#define SM_QUEUE_H

#include "segment.h"

#define SM_SLOT_INLINE 232u /* bytes of header and payload in a slot */

struct sm_slot {
    _Alignas(SM_LINE) _Atomic(uint64_t) state;
    uint64_t word; /* sm_word: kind, lengths */
    uint32_t cell; /* SM_WORD_CELL: index of the cell in the producer's segment */
    uint32_t spare;
    uint8_t bytes[SM_SLOT_INLINE];
};
_Static_assert(sizeof(struct sm_slot) == SM_SLOT_BYTES, "slots are whole cache lines");

enum sm_slot_status { SM_SLOT_EMPTY = 0, SM_SLOT_CLAIMED = 1, SM_SLOT_FULL = 2 };
#define SM_SRC_MAX 0xffffffu

static inline uint64_t sm_slot_state(uint32_t lap, uint32_t src, enum sm_slot_status status)
{
    return (uint64_t)lap << 32 | (uint64_t)src << 8 | (uint64_t)status;
}
static inline uint32_t sm_state_src(uint64_t state)
{
    return (uint32_t)(state >> 8) & SM_SRC_MAX;
}

/* Producer: the claimed slot, with the state to publish in *full; NULL: the queue is full. */
struct sm_slot *sm_queue_claim(_Atomic(uint64_t) *tail, struct sm_slot *slots, uint32_t n_slots, uint32_t src,
                               uint64_t *full);
/* Whether a claim is worth trying. */
bool sm_queue_has_room(_Atomic(uint64_t) *tail, struct sm_slot *slots, uint32_t n_slots);
/* Makes the slot's contents visible: release, pairs with the acquire in sm_queue_peek. */
static inline void sm_queue_publish(struct sm_slot *slot, uint64_t full)
{
    atomic_store_explicit(&slot->state, full, memory_order_release);
}

/* The consumer's side: private to the owner. */
struct sm_queue_rx {
    struct sm_slot *slots;
    uint32_t mask;
    uint32_t shift; /* log2 of the number of slots */
    uint64_t head;
    struct sm_slot *next; /* the slot at the head */
    uint64_t expect;      /* its state when full, without the producer */
};

void sm_queue_rx_init(struct sm_queue_rx *q, struct sm_slot *slots, uint32_t n_slots);

static inline void sm_queue_set_head(struct sm_queue_rx *q, uint64_t head)
{
    q->head = head;
    q->next = &q->slots[head & q->mask];
    q->expect = sm_slot_state((uint32_t)(head >> q->shift), 0, SM_SLOT_FULL);
}
/* The next full slot, or NULL. *src is who filled it, as the producer says. Acquire: pairs with sm_queue_publish. */
static inline struct sm_slot *sm_queue_peek(const struct sm_queue_rx *q, uint32_t *src)
{
    struct sm_slot *s = q->next;
    uint64_t state = atomic_load_explicit(&s->state, memory_order_acquire);

    if ((state & ~((uint64_t)SM_SRC_MAX << 8)) != q->expect)
        return NULL;
    *src = sm_state_src(state);
    return s;
}
/* Gives the slot at the head back to producers: release, pairs with the acquire of the claim. */
static inline void sm_queue_consume(struct sm_queue_rx *q)
{
    struct sm_slot *s = q->next;
    uint32_t lap = (uint32_t)(q->head >> q->shift);

    atomic_store_explicit(&s->state, sm_slot_state(lap + 1, 0, SM_SLOT_EMPTY), memory_order_release);
    sm_queue_set_head(q, q->head + 1);
}
/* True when the head is claimed but not published; *src is the claimant. */
bool sm_queue_stuck(const struct sm_queue_rx *q, uint32_t *src);
/* Something waits, or its producer is about to publish it. */
static inline bool sm_queue_waits(const struct sm_queue_rx *q)
{
    return (uint8_t)atomic_load_explicit(&q->next->state, memory_order_relaxed) != SM_SLOT_EMPTY;
}
/* The position of the last message of src that waits; false: none does. */
bool sm_queue_last_of(const struct sm_queue_rx *q, uint32_t src, uint64_t *at);
/* Takes the head back from a claimant that is dead. False when it was published in the meantime. */
bool sm_queue_skip(struct sm_queue_rx *q);

#endif
