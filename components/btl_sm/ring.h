/* A private ring: one sender, one consumer (the owner of the segment it lies in).
 *
 *   control (SM_RING_CTL bytes) | descriptors, 64 bytes each | data area
 *
 * A descriptor begins with its word. Descriptors lie at fixed positions and carry the number of their lap, so that what
 * is left of an earlier lap is never mistaken for news. Header and payload of up to SM_DESC_INLINE bytes in all follow
 * the word in the same line; a longer payload lies in the data area, contiguous, in the order of the descriptors. The
 * data area grows in steps while the ring is used: area.h. */
#ifndef SM_RING_H
#define SM_RING_H

#include "segment.h"

#define SM_DESC_INLINE 56u

/* The word that opens a descriptor and a queue slot:
 *   bits 0-15 lap (rings) | 16-18 am or kind of control | 19-23 flags | 24-31 header length | 32-63 payload length */
enum {
    SM_WORD_DATA = 1u << 19, /* payload in the data area (ring) or in a cell (queue) */
    SM_WORD_ROLL = 1u << 20, /* the payload starts at the start of the data area */
    SM_WORD_CTL = 1u << 21,  /* for this component: see enum sm_ctl */
    SM_WORD_BYE = 1u << 22,  /* the sender has left the ring: nothing follows */
    SM_WORD_AREA = 1u << 23  /* no message: about the ring's data area; the kind is enum sm_area_word (area.h) */
};

static inline uint64_t sm_word(uint32_t kind_and_flags, uint32_t hdr_len, uint32_t len)
{
    return (uint64_t)len << 32 | (uint64_t)hdr_len << 24 | kind_and_flags;
}
static inline uint32_t sm_word_kind(uint64_t w)
{
    return (uint32_t)(w >> 16) & 7u;
}
static inline uint32_t sm_word_hdr_len(uint64_t w)
{
    return (uint32_t)(w >> 24) & 0xffu;
}
static inline uint32_t sm_word_len(uint64_t w)
{
    return (uint32_t)(w >> 32);
}

struct sm_desc {
    _Alignas(SM_LINE) _Atomic(uint64_t) word;
    uint8_t bytes[SM_DESC_INLINE];
};
_Static_assert(sizeof(struct sm_desc) == SM_LINE, "a descriptor is one cache line");

/* Written by the consumer, read by the sender when its copy of the counters says that the ring is full. */
struct sm_ring_ctl {
    _Alignas(SM_LINE) _Atomic(uint64_t) consumed; /* descriptors | lines of data << 32, both counted without end */
    _Atomic(uint32_t) offered;                    /* step of the data area that has memory behind it */
};
_Static_assert(sizeof(struct sm_ring_ctl) <= SM_RING_CTL, "control area");

/* The sender's private side. `next` and `left` are all that a short message needs: the next `left` descriptors lie in a
 * row, are free and belong to one lap. */
struct sm_ring_tx {
    struct sm_desc *next;
    uint32_t left;
    uint16_t lap;
    uint8_t shift; /* log2 of the number of descriptors */
    uint8_t step;  /* of the data area; 0: none yet */
    struct sm_desc *desc;
    uint8_t *data;
    struct sm_ring_ctl *ctl;
    uint32_t end;   /* position at which left is 0 */
    uint32_t limit; /* first position that may not be written yet */
    uint32_t dmask; /* lines of data - 1 */
    uint32_t dpos, dlimit;
    uint32_t dseen; /* the consumer's position in the data when it was last looked at, or where this area began */
    uint32_t most;  /* longest payload that the data area takes */
    uint8_t asked;  /* what the owner was asked for last: twice the step, and 1 for a need */
};

/* The consumer's private side. */
struct sm_ring_rx {
    struct sm_desc *next; /* where the next message will be */
    uint16_t lap;         /* and the lap that it will carry */
    uint8_t expect;       /* lines of data to fetch ahead while waiting: those of the last message */
    uint16_t quiet;       /* empty polls since then */
    bool reserved;        /* there is memory behind the descriptors */
    uint8_t step;         /* of the data area, as the sender uses it */
    uint8_t offered;      /* step up to which the data area has memory behind it */
    struct sm_desc *desc;
    uint8_t *data;
    struct sm_ring_ctl *ctl;
    uint32_t mask, shift;
    uint32_t pos, published;
    uint32_t dmask, dlines; /* lines of data; dmask: - 1, or 0 */
    uint32_t dpos, dpublished;
    uint32_t sent_mark; /* messages that this process had sent when the last one came */
    uint32_t arrivals;  /* not yet told to the polling set */
    uint32_t local;     /* local index of the sender */
    int rank;
    uint32_t index; /* of the ring */
    bool held;      /* not polled until the queue has been read beyond position `behind`: polling.c */
    uint64_t behind;
};

/* Lap number of a position; never 0, which is what untouched memory holds. */
static inline uint16_t sm_lap(uint32_t pos, uint32_t shift)
{
    return (uint16_t)(((pos >> shift) & 0x7fffu) + 1u);
}

/* Binds a side to the ring at `base`, without a data area. Both sides start where the consumer's counters stand. */
void sm_ring_tx_init(struct sm_ring_tx *tx, uint8_t *base, const struct sm_geometry *g);
void sm_ring_rx_init(struct sm_ring_rx *rx, uint8_t *base, const struct sm_geometry *g);
/* Another sender begins: without a data area. */
void sm_ring_rx_begin(struct sm_ring_rx *rx);
/* Reads the counters again; true when there is room that there was not. */
bool sm_ring_look(struct sm_ring_tx *tx);
/* Reads the counters again; true when `left` is not 0 any more. */
bool sm_ring_more(struct sm_ring_tx *tx);

/* Sizes of the data area: SM_AREA_FIRST bytes at step 1, four times as many at each further step, and all of the ring's
 * at the last. */
#define SM_AREA_FIRST 8192u
static inline uint32_t sm_area_bytes(const struct sm_geometry *g, uint32_t step)
{
    uint64_t bytes = step ? (uint64_t)SM_AREA_FIRST << 2 * (step - 1) : 0;

    return bytes < g->ring_data ? (uint32_t)bytes : g->ring_data;
}
static inline uint32_t sm_area_last(const struct sm_geometry *g)
{
    uint32_t step = 1;

    while (sm_area_bytes(g, step) < g->ring_data)
        step++;
    return step;
}
/* Longest payload of an area: one that has been read empty shows at least three quarters free, and wrapping wastes less
 * than a payload. */
static inline uint32_t sm_area_most(uint32_t bytes)
{
    return bytes / 8 * 3;
}
/* The sides go on in a larger area, which contains the one that they have used: behind that, where nothing unread lies.
 * Room at its front is not used before the consumer has come so far. */
void sm_ring_tx_widen(struct sm_ring_tx *tx, const struct sm_geometry *g, uint32_t step);
void sm_ring_rx_widen(struct sm_ring_rx *rx, const struct sm_geometry *g, uint32_t step);
static inline uint32_t sm_ring_tx_pos(const struct sm_ring_tx *tx)
{
    return tx->end - tx->left;
}
static inline size_t sm_ring_data_offset(const struct sm_geometry *g)
{
    return SM_RING_CTL + (size_t)g->ring_slots * SM_LINE;
}

#endif
