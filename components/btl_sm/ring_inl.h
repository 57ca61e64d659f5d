/* The fast paths of a ring. */
#ifndef SM_RING_INL_H
#define SM_RING_INL_H

#include <string.h>
#include "ring.h"

#define SM_LIKELY(x)   __builtin_expect(!!(x), 1)
#define SM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Copies up to a line without a call: headers and the smallest payloads. */
static inline void sm_copy_small(void *dst_, const void *src_, uint32_t n)
{
    uint8_t *dst = dst_;
    const uint8_t *src = src_;

    if (n >= 16) {
        uint32_t i = 0;
        for (; i + 16 <= n; i += 16)
            memcpy(dst + i, src + i, 16);
        memcpy(dst + n - 16, src + n - 16, 16);
    } else if (n >= 8) {
        uint64_t a, b;
        memcpy(&a, src, 8);
        memcpy(&b, src + n - 8, 8);
        memcpy(dst, &a, 8);
        memcpy(dst + n - 8, &b, 8);
    } else if (n >= 4) {
        uint32_t a, b;
        memcpy(&a, src, 4);
        memcpy(&b, src + n - 4, 4);
        memcpy(dst, &a, 4);
        memcpy(dst + n - 4, &b, 4);
    } else {
        for (uint32_t i = 0; i < n; i++)
            dst[i] = src[i];
    }
}

/* Copies a payload into the ring. With fast short REP MOVSB (movs_min is then small) whole lines are written without
 * being read first, and a line that the waiting consumer fetches early costs less: measured 0.74 of memcpy's time at 2
 * KiB. */
static inline void sm_copy_in(void *dst, const void *src, size_t n, uint32_t movs_min)
{
#if defined(__x86_64__)
    if (n >= movs_min) {
        __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
        return;
    }
#else
    (void)movs_min;
#endif
    memcpy(dst, src, n);
}

/* Reads the consumer's counters again; true when there is room for one descriptor. */
static inline bool sm_ring_refresh(struct sm_ring_tx *tx)
{
    /* Acquire: pairs with sm_ring_publish_consumed; the consumer has read what we may now overwrite. */
    uint64_t c = atomic_load_explicit(&tx->ctl->consumed, memory_order_acquire);

    tx->limit = (uint32_t)c + tx->mask + 1;
    tx->dlimit = (uint32_t)(c >> 32) + tx->dmask + 1;
    return tx->pos != tx->limit && (uint32_t)(tx->limit - tx->pos) <= tx->mask + 1;
}

/* The next descriptor, or NULL when the ring is full. */
static inline struct sm_desc *sm_ring_claim(struct sm_ring_tx *tx)
{
    if (SM_UNLIKELY(tx->pos == tx->limit) && !sm_ring_refresh(tx))
        return NULL;
    return &tx->desc[tx->pos & tx->mask];
}

/* Room for len contiguous bytes of data: where, and flags to add to the word; NULL: full. Moves nothing. */
static inline uint8_t *sm_ring_data_room(struct sm_ring_tx *tx, uint32_t len, uint32_t *flags, uint32_t *next)
{
    uint32_t lines = (len + SM_LINE - 1) / SM_LINE;
    uint32_t start = tx->dpos;

    *flags = SM_WORD_DATA;
    if (SM_UNLIKELY((start & tx->dmask) + lines > tx->dmask + 1)) {
        start = (start | tx->dmask) + 1;
        *flags |= SM_WORD_ROLL;
    }
    if (SM_UNLIKELY((int32_t)(tx->dlimit - (start + lines)) < 0)) {
        sm_ring_refresh(tx);
        if ((int32_t)(tx->dlimit - (start + lines)) < 0)
            return NULL;
    }
    *next = start + lines;
    return tx->data + (size_t)(start & tx->dmask) * SM_LINE;
}

/* Publishes the descriptor at pos: release, pairs with the acquire in sm_ring_poll. */
static inline void sm_ring_publish(struct sm_ring_tx *tx, struct sm_desc *d, uint64_t word)
{
    atomic_store_explicit(&d->word, word | sm_lap(tx->pos, tx->shift), memory_order_release);
    tx->pos++;
}

/* The consumer's next descriptor and its word, or NULL. */
static inline struct sm_desc *sm_ring_poll(const struct sm_ring_rx *rx, uint64_t *word)
{
    struct sm_desc *d = &rx->desc[rx->pos & rx->mask];

    *word = atomic_load_explicit(&d->word, memory_order_acquire);
    return (uint16_t)*word == sm_lap(rx->pos, rx->shift) ? d : NULL;
}

#define SM_EXPECT_LINES 64u
#define SM_EXPECT_POLLS 1024u

/* The ring is empty: fetch the lines where the payload of the next message will lie, if it is like the last. The sender
 * writes them before the descriptor, so that they come over while it is still copying, not after. Measured: a quarter
 * off the time of 512 B to 16 KiB. Stops when nothing has come for a while. */
static inline void sm_ring_expect(struct sm_ring_rx *rx)
{
    const uint8_t *at = rx->data + (size_t)(rx->dpos & rx->dmask) * SM_LINE;

    if (rx->quiet++ >= SM_EXPECT_POLLS) {
        rx->expect = 0;
        return;
    }
    for (uint32_t i = 0; i < rx->expect; i++)
        __builtin_prefetch(at + (size_t)i * SM_LINE);
}

/* Where the payload of a descriptor with SM_WORD_DATA lies; NULL when it would not fit: the word is wrong. */
static inline const uint8_t *sm_ring_data_at(struct sm_ring_rx *rx, uint64_t word)
{
    uint32_t lines = (uint32_t)(((uint64_t)sm_word_len(word) + SM_LINE - 1) / SM_LINE);
    uint32_t start = rx->dpos;

    if (word & SM_WORD_ROLL && start & rx->dmask)
        start = (start | rx->dmask) + 1;
    if ((uint64_t)(start & rx->dmask) + lines > (uint64_t)rx->dmask + 1)
        return NULL;
    rx->dpos = start + lines;
    rx->expect = (uint8_t)(lines < SM_EXPECT_LINES ? lines : SM_EXPECT_LINES);
    rx->quiet = 0;
    return rx->data + (size_t)(start & rx->dmask) * SM_LINE;
}

/* Lets the sender have what has been read: release, pairs with sm_ring_refresh. */
static inline void sm_ring_publish_consumed(struct sm_ring_rx *rx)
{
    atomic_store_explicit(&rx->ctl->consumed, (uint64_t)rx->dpos << 32 | rx->pos, memory_order_release);
    rx->published = rx->pos;
    rx->dpublished = rx->dpos;
}
/* Publishes each quarter of the ring: the sender then always sees at least three quarters of a drained ring free. */
static inline void sm_ring_consumed(struct sm_ring_rx *rx)
{
    if (rx->pos - rx->published > rx->mask / 4 || rx->dpos - rx->dpublished > rx->dmask / 4)
        sm_ring_publish_consumed(rx);
}

#endif
