/* The fast paths of a ring. */
#ifndef SM_RING_INL_H
#define SM_RING_INL_H

#include <string.h>
#include <strata/sdk/copy.h>
#include <strata/sdk/hint.h>
#include "ring.h"

/* Copies up to a line without a call and without a loop: headers and the smallest payloads. */
static inline __attribute__((always_inline)) void sm_copy_small(void *dst_, const void *src_, uint32_t n)
{
    uint8_t *dst = dst_;
    const uint8_t *src = src_;

    /* Copies that overlap where n is not the sum of their sizes. Words of 8 bytes up to 32, because headers have just
     * been written in such words: a wider load would have to wait until they have left the store buffer. */
    if (n > 16) {
        uint64_t x[4];
        if (n > 32) {
            memcpy(dst, src, 32);
            if (n > 48)
                memcpy(dst + 32, src + 32, 16);
            memcpy(dst + n - 16, src + n - 16, 16);
            return;
        }
        memcpy(&x[0], src, 8);
        memcpy(&x[1], src + 8, 8);
        memcpy(&x[2], src + n - 16, 8);
        memcpy(&x[3], src + n - 8, 8);
        memcpy(dst, &x[0], 8);
        memcpy(dst + 8, &x[1], 8);
        memcpy(dst + n - 16, &x[2], 8);
        memcpy(dst + n - 8, &x[3], 8);
    } else if (n >= 8) {
        uint64_t x, y;
        memcpy(&x, src, 8);
        memcpy(&y, src + n - 8, 8);
        memcpy(dst, &x, 8);
        memcpy(dst + n - 8, &y, 8);
    } else if (n >= 4) {
        uint32_t x, y;
        memcpy(&x, src, 4);
        memcpy(&y, src + n - 4, 4);
        memcpy(dst, &x, 4);
        memcpy(dst + n - 4, &y, 4);
    } else if (n) {
        dst[0] = src[0];
        dst[n / 2] = src[n / 2];
        dst[n - 1] = src[n - 1];
    }
}

/* The next descriptor, or NULL when the ring is full. */
static inline struct sm_desc *sm_ring_claim(struct sm_ring_tx *tx)
{
    if (ST_UNLIKELY(tx->left == 0) && !sm_ring_more(tx))
        return NULL;
    return tx->next;
}

/* Room for len <= tx->most contiguous bytes of data: where, and flags to add to the word; NULL: full. Moves nothing. */
static inline uint8_t *sm_ring_data_room(struct sm_ring_tx *tx, uint32_t len, uint32_t *flags, uint32_t *next)
{
    uint32_t lines = (len + SM_LINE - 1) / SM_LINE;
    uint32_t start = tx->dpos;

    *flags = SM_WORD_DATA;
    if (ST_UNLIKELY((start & tx->dmask) + lines > tx->dmask + 1)) {
        start = (start | tx->dmask) + 1;
        *flags |= SM_WORD_ROLL;
    }
    if (ST_UNLIKELY((int32_t)(tx->dlimit - (start + lines)) < 0)) {
        sm_ring_look(tx);
        if ((int32_t)(tx->dlimit - (start + lines)) < 0)
            return NULL;
    }
    *next = start + lines;
    return tx->data + (size_t)(start & tx->dmask) * SM_LINE;
}

/* Publishes the claimed descriptor: release, pairs with the acquire in sm_ring_poll. */
static inline void sm_ring_publish(struct sm_ring_tx *tx, struct sm_desc *d, uint64_t word)
{
    atomic_store_explicit(&d->word, word | tx->lap, memory_order_release);
    tx->next++;
    tx->left--;
}

/* Whether the consumer's next descriptor, rx->next, holds a message, whose word is *word then. */
static inline bool sm_ring_poll(const struct sm_ring_rx *rx, uint64_t *word)
{
    *word = atomic_load_explicit(&rx->next->word, memory_order_acquire);
    return ST_LIKELY((uint16_t)*word == rx->lap);
}

/* Goes on to the next descriptor. */
static inline void sm_ring_advance(struct sm_ring_rx *rx)
{
    rx->next++;
    if (ST_UNLIKELY((++rx->pos & rx->mask) == 0)) {
        rx->next = rx->desc;
        rx->lap = sm_lap(rx->pos, rx->shift);
    }
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
    if ((uint64_t)(start & rx->dmask) + lines > rx->dlines)
        return NULL;
    rx->dpos = start + lines;
    rx->expect = (uint8_t)(lines < SM_EXPECT_LINES ? lines : SM_EXPECT_LINES);
    rx->quiet = 0;
    return rx->data + (size_t)(start & rx->dmask) * SM_LINE;
}

/* Lets the sender have what has been read: release, pairs with the acquire in sm_ring_look. */
static inline void sm_ring_publish_consumed(struct sm_ring_rx *rx)
{
    atomic_store_explicit(&rx->ctl->consumed, (uint64_t)rx->dpos << 32 | rx->pos, memory_order_release);
    rx->published = rx->pos;
    rx->dpublished = rx->dpos;
}
/* A quarter of the ring has been read and not been published: if each is, the sender always sees at least three
 * quarters of a drained ring free. */
static inline bool sm_ring_quarter(const struct sm_ring_rx *rx)
{
    return rx->pos - rx->published > rx->mask / 4 || rx->dpos - rx->dpublished > rx->dmask / 4;
}

#endif
