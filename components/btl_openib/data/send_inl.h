/* Shared by all sends: room, credits, the lead of a message, posting it. */
#ifndef IB_SEND_INL_H
#define IB_SEND_INL_H

#include <arpa/inet.h>
#include <string.h>
#include <strata/sdk/copy.h>
#include "data/completion.h"
#include "data/imm_head.h"

/* Credits to be returned with a message, at most that many of each priority. */
static inline void lead_take_owed(struct ib_peer *p, struct ib_head *h, uint16_t most)
{
    if (most == UINT16_MAX) { /* immediate data have no place for slots */
        h->slots = p->owed_slots;
        p->owed_slots = 0;
    }
    for (int i = 0; i < IB_PRIORITIES; i++) {
        h->credits[i] = p->owed[i] < most ? p->owed[i] : most;
        p->owed[i] = (uint16_t)(p->owed[i] - h->credits[i]);
    }
}

static inline void lead_give_back(struct ib_peer *p, const struct ib_head *h)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->owed[i] = (uint16_t)(p->owed[i] + h->credits[i]);
    p->owed_slots = (uint8_t)(p->owed_slots + h->slots);
}

/* All of it, as it stands in a head from its third byte on, and in the footer of a slot. The upper 16 bits are 0. */
static inline uint64_t ib_take_all_owed(struct ib_peer *p)
{
    uint64_t owed = p->owed_all;

    p->owed_all = 0;
    return owed;
}

/* The lead of a message: head and header, decided before it is posted. */
struct ib_lead {
    struct ib_head head;
    bool as_imm, keep; /* nothing in front of the data, but imm; or both ends keep the header */
    uint32_t imm;      /* in network order */
};

/* Takes credits that the peer is owed, which go back when the message does not go. */
static inline void lead_make(struct ib_qp *q, enum st_am am, const void *hdr, uint32_t hdr_len, uint32_t len,
                             struct ib_lead *l)
{
    uint32_t imm = 0;

    *l = (struct ib_lead){.head = {.am = (uint8_t)am, .hdr_len = (uint8_t)hdr_len}};
    if (ib_may_be_kept(hdr_len) && ib_head_costs_a_packet(q, hdr_len, len)) {
        l->as_imm = q->said.am == am && q->said.len == hdr_len && ib_imm_bytes(&q->said, hdr, &imm);
        l->keep = !l->as_imm;
    }
    lead_take_owed(q->peer, &l->head, l->as_imm ? IB_IMM_CREDITS : UINT16_MAX);
    if (q != &q->peer->q[IB_HIGH]) { /* it may come after the next grant, whose slots these are not */
        q->peer->owed_slots = (uint8_t)(q->peer->owed_slots + l->head.slots);
        l->head.slots = 0;
    }
    if (l->keep)
        l->head.hdr_len |= IB_HDR_KEPT;
    l->imm = htonl(imm | l->head.credits[IB_HIGH] | (uint32_t)l->head.credits[IB_LOW] << IB_IMM_LOW_AT);
}

/* Head and header in front of the data, where they do not go as immediate data. */
static inline void lead_put(const struct ib_lead *l, char *to, const void *hdr, uint32_t hdr_len)
{
    memcpy(to, &l->head, IB_HEAD);
    st_copy(to + IB_HEAD, hdr, hdr_len);
}

static inline void lead_went(struct ib_module *m, struct ib_qp *q, const struct ib_lead *l, const void *hdr)
{
    if (l->as_imm || l->keep)
        ib_keep_hdr(&q->said, l->head.am, hdr, l->head.hdr_len & ~IB_HDR_KEPT);
    m->count.imm_heads += l->as_imm;
}

/* Signalled: `what` is wanted back soon, though this peer may have nothing more to say. With immediate data when there
 * is a pointer to them. */
static inline int send_post_signalled(struct ib_module *m, struct ib_qp *q, struct ibv_sge *sge, int n,
                                      const uint32_t *imm, void *what, enum ib_sent_kind kind)
{
    struct ibv_send_wr wr = {.wr_id = ib_wr_id(q),
                             .sg_list = sge,
                             .num_sge = n,
                             .opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = imm ? *imm : 0};
    struct ibv_send_wr *bad;

    if (!ib_batch_add(m, q, &wr) && ST_UNLIKELY(ibv_post_send(q->qp, &wr, &bad) != 0))
        return STRATA_ERR_AGAIN;
    ib_posted(q, what, kind);
    if (q->priority == IB_LOW) {
        q->messages++;
        ib_reorder_begin(q->peer);
        ib_expect_low(&m->poll);
    }
    return STRATA_OK;
}

/* From a registered buffer, len bytes at `at`. */
static inline int send_post_buffer(struct ib_module *m, struct ib_qp *q, struct ib_buffer *b, const char *at,
                                   uint32_t len, const uint32_t *imm)
{
    struct ibv_sge sge = {(uintptr_t)at, len, b->lkey};

    if (ST_LIKELY(send_post_signalled(m, q, &sge, 1, imm, b, IB_SENT_BUFFER) == STRATA_OK))
        return STRATA_OK;
    ib_buffer_put(&m->q[q->priority].sends, b);
    return STRATA_ERR_AGAIN;
}

/* Posts the message built in m->brief.image. Signalled when asked to, and often enough that the send queue never fills
 * with unsignalled ones. */
static inline __attribute__((always_inline)) int send_post_brief(struct ib_module *m, struct ib_qp *q, uint32_t len,
                                                                 bool signal)
{
    signal = signal || ((q->posted + 1) & q->every) == 0;
    m->brief.sge.length = len;
    m->brief.wr.wr_id = ib_wr_id(q);
    m->brief.wr.send_flags = IBV_SEND_INLINE;
    if (ST_UNLIKELY(signal)) {
        m->brief.wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        ib_posted(q, NULL, IB_SENT_NOTHING);
    } else {
        q->posted++;
    }
    return ibv_post_send(q->qp, &m->brief.wr, &m->brief.bad);
}

/* The request was noted as posted before, so that nothing is left to do afterwards. */
static inline void send_unpost(struct ib_module *m)
{
    struct ib_qp *q = ib_sender(m->brief.wr.wr_id);

    q->posted--;
    if (m->brief.wr.send_flags & IBV_SEND_SIGNALED)
        q->signals--;
}

static inline bool send_has_room_now(const struct ib_qp *q)
{
    return ST_LIKELY(q->credits > 0 && ib_qp_room(q) > IB_CONTROL_SENDS);
}

static inline bool send_has_room(const struct ib_peer *p, const struct ib_qp *q)
{
    return send_has_room_now(q) || ib_reclaim_room(p, q);
}

/* The layer above sends its short messages by high priority. */
static inline void send_note_crowd(struct ib_qp *q)
{
    if (ST_UNLIKELY(q->priority == IB_HIGH && q->credits <= q->notice_at))
        ib_crowded(q);
}

/* Room, and no crowd to be noted. */
static inline bool send_has_ample_room(const struct ib_qp *q)
{
    return ST_LIKELY(q->credits > q->notice_at && ib_qp_room(q) > IB_CONTROL_SENDS);
}

static inline void send_count(struct ib_module *m, struct ib_qp *q, uint32_t len)
{
    q->credits--;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
}

static inline struct ib_qp *send_qp(const struct ib_module *m, struct ib_peer *p, uint32_t total)
{
    return &p->q[total <= m->spec[IB_HIGH].size ? IB_HIGH : IB_LOW];
}

#endif
