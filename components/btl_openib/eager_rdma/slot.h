/* Layout of messages of the eager RDMA channel. A message ends with its slot, so that its last byte has a fixed place:
 * an arrival is seen there before its length is known. What is longer than the slot lies in the slots below, which come
 * next: slots are used from the highest address down. docs/design/eager-rdma.md has the picture. Pure functions. */
#ifndef IB_SLOT_H
#define IB_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "wire.h"

#define IB_LINE      64u
#define IB_SLOT_MOST 8192u /* bytes of a message: displaced bytes are counted for 128 lines at most */

/* How the receiver finds messages; it chooses, and tells the sender. */
enum ib_detect { IB_DETECT_FLAG, IB_DETECT_SEAL, IB_DETECT_IMM, IB_DETECTS };

/* The end of every message: two words. The first is what is returned, as in ib_peer.owed_all; 0 most often. The second
 * is known to the receiver but for the length: one comparison with the word of an empty message checks all of it. */
struct ib_footer {
    uint16_t credits[2]; /* by priority */
    uint8_t control;     /* 0 */
    uint8_t slots;       /* of the receiver's ring to the sender */
    uint16_t none;       /* 0 */
    uint16_t len;        /* bytes of header and data */
    uint16_t number;     /* of the message: ib_qp.posted of the sender */
    uint8_t am;          /* enum st_am */
    uint8_t hdr_len;
    uint8_t spare; /* 0 */
    uint8_t flag;  /* the lap's value; the last byte of its slot */
};
#define IB_FOOTER ((uint32_t)sizeof(struct ib_footer))
_Static_assert(sizeof(struct ib_footer) == 16 && offsetof(struct ib_footer, flag) == 15, "the flag is the last byte");
_Static_assert(offsetof(struct ib_footer, len) == 8, "the second word begins with the length");
/* Places in the second word. */
enum { IB_FOOTER_NUMBER_AT = 16, IB_FOOTER_AM_AT = 32, IB_FOOTER_HDR_AT = 40, IB_FOOTER_FLAG_AT = 56 };

/* Header and data of a message of one line have fixed places, whatever their lengths: the line begins with them. */
#define IB_LINE_BODY (IB_LINE - IB_FOOTER)
/* Most bytes of data in one line behind a header of IB_USUAL_HDR. */
#define IB_LINE_DATA (IB_LINE_BODY - IB_USUAL_HDR)

/* For words that were written, or are read, one by one: a compiler that moves two of them at once makes the processor
 * wait until both have left its store buffer. */
static inline uint64_t ib_one_word(uint64_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* Values of the flag in even and odd laps. 0 is none: memory that was not written yet. */
static inline uint8_t ib_lap_flag(uint32_t lap)
{
    return (uint8_t)(1 + (lap & 1));
}

/* The second word of the footer of a message without data, with a header of IB_USUAL_HDR. */
static inline uint64_t ib_footer_word(uint8_t flag, uint32_t number, uint32_t am)
{
    return (uint64_t)flag << IB_FOOTER_FLAG_AT | (uint64_t)IB_USUAL_HDR << IB_FOOTER_HDR_AT |
           (uint64_t)am << IB_FOOTER_AM_AT | (uint64_t)(uint16_t)number << IB_FOOTER_NUMBER_AT | IB_USUAL_HDR;
}

/* Credits and slots that the footer returns, as a head. */
static inline struct ib_head ib_footer_head(uint64_t owed)
{
    struct ib_head h;

    owed <<= 16;
    memcpy(&h, &owed, sizeof h);
    return h;
}

/* Bytes that header and data of len bytes take. */
static inline uint32_t ib_slot_body(uint32_t len)
{
    return len <= IB_LINE_BODY ? IB_LINE_BODY : (len + 7u) & ~7u;
}

/* Bytes in front of the footer that hold the displaced bytes of n lines. None lies in the last byte of a line: the
 * footer leaves 48 bytes of its line, and each further line has 63. */
static inline uint32_t ib_seal_room(uint32_t n)
{
    return (n + (n > 48) + (n > 111) + 7u) & ~7u;
}

/* Lines of a message with a seal. */
static inline uint32_t ib_seal_lines(uint32_t len)
{
    uint32_t body = ib_slot_body(len) + IB_FOOTER, n = (body + IB_LINE - 1) / IB_LINE;

    while (body + ib_seal_room(n - 1) > n * IB_LINE)
        n++;
    return n;
}

/* Bytes between the end of header and data, rounded up, and the end of the message. */
static inline uint32_t ib_slot_tail(uint32_t len, bool seal)
{
    if (!seal || ib_slot_body(len) + IB_FOOTER <= IB_LINE)
        return IB_FOOTER;
    return IB_FOOTER + ib_seal_room(ib_seal_lines(len) - 1);
}

/* Bytes of a message as it is written. */
static inline uint32_t ib_slot_bytes(uint32_t len, bool seal)
{
    return ib_slot_body(len) + ib_slot_tail(len, seal);
}

/* Most bytes of header and data of a message of that size, whole lines. */
static inline uint32_t ib_slot_most(uint32_t size, bool seal)
{
    return size - IB_FOOTER - (seal ? ib_seal_room(size / IB_LINE - 1) : 0);
}

/* Slots of `size` bytes that a message takes, of which `left` are left until the last one. */
static inline uint32_t ib_slots_of(uint32_t bytes, uint32_t size, uint32_t left)
{
    uint32_t k = (bytes + size - 1) / size;

    return k < left ? k : left;
}

/* Before a message's k slots are used again: nothing lies where the flags of all but the first are expected. */
static inline void ib_slots_clear(char *end, uint32_t size, uint32_t k)
{
    for (uint32_t i = 1; i < k; i++)
        end[-(int32_t)(i * size) - 1] = 0;
}

/* ---- seal.c: `end` is the end of a message, or of an image of one; both are ends of lines ---- */
/* Puts `value` over the last byte of each line of a message of len bytes, but of the footer's. */
void ib_seal(char *end, uint32_t len, uint8_t value);
/* Whether all lines of the message have arrived. Its footer has. */
bool ib_seal_whole(const char *end, uint32_t len, uint8_t value);
/* Puts displaced bytes back. */
void ib_seal_open(char *end, uint32_t len);
/* Before its slots are used again: no line but the last looks as if it had been written. */
void ib_seal_clear(char *end, uint32_t len);

/* Slot of the first message of the ring in a place of the polling set. Rings begin at pages: by one slot for all, their
 * flags would share one set of the cache as long as they are idle. */
static inline uint8_t ib_ring_first(uint32_t place, uint32_t slots)
{
    return (uint8_t)(place % slots);
}

/* A ring of eager RDMA, as the receiver grants it. */
struct ib_ring_grant {
    uint64_t address;
    uint32_t rkey;
    uint32_t word;   /* of sdk/hot_peers.h */
    uint16_t size;   /* bytes of a slot */
    uint16_t span;   /* most slots of a message */
    uint8_t slots;   /* 0: the ring is revoked, and nothing else is said */
    uint8_t first;   /* slot of the first message */
    uint8_t detect;  /* enum ib_detect */
    uint8_t refused; /* of a farewell, 1: the sender of messages wants no ring at all */
};
_Static_assert(sizeof(struct ib_ring_grant) == 24, "no padding");

#endif
