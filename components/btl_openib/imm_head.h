/* Heads that travel as immediate data (wire.h). A device cuts messages into packets of the path's MTU, and lengths are
 * often multiples of it: then head and header, 24 bytes, would be a packet of their own. 4 KiB are four packets of 1
 * KiB so and not five. Both ends keep the header of the last such message of a queue pair, whose messages keep their
 * order; what differs is the sequence number, and perhaps the tag. */
#ifndef IB_IMM_HEAD_H
#define IB_IMM_HEAD_H

#include <arpa/inet.h>
#include <string.h>
#include "openib.h"

/* What leads a message, decided before it is posted. */
struct ib_lead {
    struct ib_head head;
    bool as_imm, keep; /* nothing in front of the data, but imm; or both ends keep the header */
    uint32_t imm;      /* in network order */
};

static inline bool ib_head_costs_a_packet(const struct ib_qp *q, uint32_t len)
{
    return len > 0 && (-len & (q->packet - 1)) < IB_HEAD + IB_USUAL_HDR;
}

/* The bytes in which hdr is not what was said last, as in immediate data; false: they are too many. */
static inline bool ib_imm_bytes(const struct ib_kept_hdr *said, const void *hdr, uint32_t *imm)
{
    uint64_t word[IB_USUAL_HDR / sizeof(uint64_t)];
    uint32_t n = 0;

    memcpy(word, hdr, sizeof word);
    *imm = 0;
    for (uint32_t i = 0; i < IB_USUAL_HDR / sizeof word[0]; i++)
        for (uint64_t other = word[i] ^ said->word[i]; other;) {
            uint32_t shift = (uint32_t)__builtin_ctzll(other) & ~7u;
            uint32_t byte = (uint32_t)(word[i] >> shift & 0xff) << 4 | (i * 8 + shift / 8);
            if (n == IB_IMM_BYTES)
                return false;
            *imm |= byte << (IB_IMM_BYTE_AT + IB_IMM_BYTE_BITS * n++);
            other &= ~(UINT64_C(0xff) << shift);
        }
    for (; n < IB_IMM_BYTES; n++) /* the first byte is what it is */
        *imm |= (uint32_t)(word[0] & 0xff) << 4 << (IB_IMM_BYTE_AT + IB_IMM_BYTE_BITS * n);
    return true;
}

/* What immediate data say: the head, and heard becomes the header; false: there is none that it could differ from. */
static inline bool ib_imm_heard(struct ib_kept_hdr *heard, uint32_t imm, struct ib_head *h)
{
    *h = (struct ib_head){
        .am = ST_AM_PML, .hdr_len = IB_USUAL_HDR, .credits = {imm & IB_IMM_CREDITS, imm >> 4 & IB_IMM_CREDITS}};
    for (uint32_t n = 0; n < IB_IMM_BYTES; n++) {
        uint32_t byte = imm >> (IB_IMM_BYTE_AT + IB_IMM_BYTE_BITS * n), at = byte & 0xf;
        uint64_t *word = &heard->word[at / 8];
        *word = (*word & ~(UINT64_C(0xff) << at % 8 * 8)) | (uint64_t)(byte >> 4 & 0xff) << at % 8 * 8;
    }
    return heard->kept;
}

static inline void ib_keep_hdr(struct ib_kept_hdr *h, const void *hdr)
{
    memcpy(h->word, hdr, sizeof h->word);
    h->kept = true;
}

/* Takes credits that the peer is owed, which go back when the message does not go. */
static inline void ib_lead_make(struct ib_qp *q, enum st_am am, const void *hdr, uint32_t hdr_len, uint32_t len,
                                struct ib_lead *l)
{
    struct ib_peer *p = q->peer;
    uint32_t imm = 0, most = UINT16_MAX;

    *l = (struct ib_lead){.head = {.am = (uint8_t)am, .hdr_len = (uint8_t)hdr_len}};
    if (am == ST_AM_PML && hdr_len == IB_USUAL_HDR && ib_head_costs_a_packet(q, len)) {
        l->as_imm = q->said.kept && ib_imm_bytes(&q->said, hdr, &imm);
        l->keep = !l->as_imm;
        most = l->as_imm ? IB_IMM_CREDITS : most;
    }
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        l->head.credits[i] = (uint16_t)(p->owed[i] < most ? p->owed[i] : most);
        p->owed[i] = (uint16_t)(p->owed[i] - l->head.credits[i]);
    }
    if (l->keep)
        l->head.hdr_len |= IB_HDR_KEPT;
    l->imm = htonl(imm | l->head.credits[IB_HIGH] | (uint32_t)l->head.credits[IB_LOW] << 4);
}

static inline void ib_lead_went(struct ib_qp *q, const struct ib_lead *l, const void *hdr)
{
    if (l->as_imm || l->keep)
        ib_keep_hdr(&q->said, hdr);
}

#endif
