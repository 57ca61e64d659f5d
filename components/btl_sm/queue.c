/* Slow halves of the shared queue. */
#include "queue.h"

struct sm_slot *sm_queue_claim(_Atomic(uint64_t) *tail, struct sm_slot *slots, uint32_t n_slots, uint32_t src,
                               uint64_t *full)
{
    uint64_t t = atomic_load_explicit(tail, memory_order_relaxed);
    uint32_t shift = (uint32_t)__builtin_ctz(n_slots);

    /* Every failed round means that another producer moved on; the bound is for words that a stray peer wrote. */
    for (uint32_t round = 0; round < 4 * n_slots + 64; round++) {
        struct sm_slot *s = &slots[t & (n_slots - 1)];
        uint32_t lap = (uint32_t)(t >> shift);
        uint64_t state = atomic_load_explicit(&s->state, memory_order_acquire);
        int32_t ahead = (int32_t)((uint32_t)(state >> 32) - lap);

        if (state == sm_slot_state(lap, 0, SM_SLOT_EMPTY)) {
            /* Acquire: pairs with the consumer's release, so that its reads of the last contents are over. */
            if (!atomic_compare_exchange_strong_explicit(&s->state, &state, sm_slot_state(lap, src, SM_SLOT_CLAIMED),
                                                         memory_order_acquire, memory_order_relaxed))
                continue;
            atomic_compare_exchange_strong_explicit(tail, &t, t + 1, memory_order_relaxed, memory_order_relaxed);
            *full = sm_slot_state(lap, src, SM_SLOT_FULL);
            return s;
        }
        if (ahead < 0) { /* still holds a message of the last lap */
            uint64_t now = atomic_load_explicit(tail, memory_order_relaxed);
            if (now == t)
                return NULL;
            t = now;
            continue;
        }
        /* Taken: help whoever took it to move the tail, and try the next. */
        if (atomic_compare_exchange_strong_explicit(tail, &t, t + 1, memory_order_relaxed, memory_order_relaxed))
            t++;
    }
    return NULL;
}

bool sm_queue_has_room(_Atomic(uint64_t) *tail, struct sm_slot *slots, uint32_t n_slots)
{
    uint64_t t = atomic_load_explicit(tail, memory_order_relaxed);
    uint64_t state = atomic_load_explicit(&slots[t & (n_slots - 1)].state, memory_order_acquire);
    uint32_t lap = (uint32_t)(t >> (uint32_t)__builtin_ctz(n_slots));

    return (int32_t)((uint32_t)(state >> 32) - lap) >= 0; /* not a message of the last lap */
}

void sm_queue_rx_init(struct sm_queue_rx *q, struct sm_slot *slots, uint32_t n_slots)
{
    q->slots = slots;
    q->mask = n_slots - 1;
    q->shift = (uint32_t)__builtin_ctz(n_slots);
    sm_queue_set_head(q, 0);
}

bool sm_queue_stuck(const struct sm_queue_rx *q, uint32_t *src)
{
    uint64_t state = atomic_load_explicit(&q->next->state, memory_order_relaxed);

    if ((uint8_t)state != SM_SLOT_CLAIMED)
        return false;
    *src = sm_state_src(state);
    return true;
}

bool sm_queue_last_of(const struct sm_queue_rx *q, uint32_t src, uint64_t *at)
{
    bool found = false;

    /* Slots are claimed in their order: there is nothing beyond the first empty one. */
    for (uint64_t pos = q->head; pos - q->head <= q->mask; pos++) {
        /* Acquire: pairs with sm_queue_publish; what the producer wrote before, such as a BYE, is seen after this. */
        uint64_t state = atomic_load_explicit(&q->slots[pos & q->mask].state, memory_order_acquire);
        if ((uint8_t)state == SM_SLOT_EMPTY)
            break;
        if ((uint8_t)state == SM_SLOT_FULL && sm_state_src(state) == src) {
            *at = pos;
            found = true;
        }
    }
    return found;
}

bool sm_queue_skip(struct sm_queue_rx *q)
{
    struct sm_slot *s = q->next;
    uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
    uint32_t lap = (uint32_t)(q->head >> q->shift);

    if ((uint8_t)state != SM_SLOT_CLAIMED ||
        !atomic_compare_exchange_strong_explicit(&s->state, &state, sm_slot_state(lap + 1, 0, SM_SLOT_EMPTY),
                                                 memory_order_acq_rel, memory_order_relaxed))
        return false;
    sm_queue_set_head(q, q->head + 1);
    return true;
}
