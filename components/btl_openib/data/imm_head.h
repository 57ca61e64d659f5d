/* Heads that travel as immediate data (wire.h). A device cuts messages into packets of the path's MTU, and lengths are
 * often multiples of it: head and header, 24 or 32 bytes, would be a packet of their own. Both ends keep the header of
 * the last such message of a queue pair, whose messages keep their order; messages of one client differ little: in a
 * number, perhaps a tag. */
#ifndef IB_IMM_HEAD_H
#define IB_IMM_HEAD_H

#include <string.h>
#include "module.h"

static inline bool ib_head_costs_a_packet(const struct ib_qp *q, uint32_t hdr_len, uint32_t len)
{
    return len > 0 && (-len & (q->packet - 1)) < IB_HEAD + hdr_len;
}

/* Whole words, as those of messages are. */
static inline bool ib_may_be_kept(uint32_t hdr_len)
{
    return hdr_len > 0 && hdr_len % sizeof(uint64_t) == 0 && hdr_len <= IB_KEPT_WORDS * sizeof(uint64_t);
}

static inline uint32_t ib_imm_byte(uint32_t n, uint32_t place, uint32_t value)
{
    return (place | value << IB_IMM_PLACE_BITS) << (IB_IMM_BYTE_AT + IB_IMM_BYTE_BITS * n);
}

/* The bytes in which hdr differs from the last one, as immediate data; false: too many. */
static inline bool ib_imm_bytes(const struct ib_kept_hdr *said, const void *hdr, uint32_t *imm)
{
    uint64_t word[IB_KEPT_WORDS];
    uint32_t n = 0;

    memcpy(word, hdr, said->len);
    *imm = 0;
    for (uint32_t i = 0; i < said->len / sizeof word[0]; i++)
        for (uint64_t other = word[i] ^ said->word[i]; other;) {
            uint32_t shift = (uint32_t)__builtin_ctzll(other) & ~7u;
            if (n == IB_IMM_BYTES)
                return false;
            *imm |= ib_imm_byte(n++, i * 8 + shift / 8, word[i] >> shift & 0xff);
            other &= ~(UINT64_C(0xff) << shift);
        }
    while (n < IB_IMM_BYTES) /* the first byte is what it is */
        *imm |= ib_imm_byte(n++, 0, word[0] & 0xff);
    return true;
}

/* Reads immediate data: the head, and `heard` becomes the header. False: there is no kept header, or no such byte in
 * it. */
static inline bool ib_imm_heard(struct ib_kept_hdr *heard, uint32_t imm, struct ib_head *h)
{
    *h = (struct ib_head){.am = heard->am,
                          .hdr_len = (uint8_t)heard->len,
                          .credits = {imm & IB_IMM_CREDITS, imm >> IB_IMM_LOW_AT & IB_IMM_CREDITS}};
    for (uint32_t n = 0; n < IB_IMM_BYTES; n++) {
        uint32_t byte = imm >> (IB_IMM_BYTE_AT + IB_IMM_BYTE_BITS * n);
        uint32_t place = byte & ((1u << IB_IMM_PLACE_BITS) - 1), shift = place % 8 * 8;
        if (place >= heard->len)
            return false;
        heard->word[place / 8] &= ~(UINT64_C(0xff) << shift);
        heard->word[place / 8] |= (uint64_t)(byte >> IB_IMM_PLACE_BITS & 0xff) << shift;
    }
    return true;
}

static inline void ib_keep_hdr(struct ib_kept_hdr *h, uint8_t am, const void *hdr, uint32_t hdr_len)
{
    memcpy(h->word, hdr, hdr_len);
    h->len = hdr_len;
    h->am = am;
}

#endif
