/* Sending by a ring: the hot path. */
#include <arpa/inet.h>
#include <strata/sdk/btl_hints.h>
#include "data/completion.h"
#include "data/send.h"
#include "data/send_inl.h"
#include "module.h"

/* Staged messages lie in the slot that corresponds; the memory is made with the first of them. */
static __attribute__((noinline)) bool ring_stage(struct ib_module *m, struct ib_ring_out *out)
{
    if (out->unstaged ||
        ib_ring_memory_get(m, (size_t)out->n * out->size, IBV_ACCESS_LOCAL_WRITE, &out->staging) != STRATA_OK) {
        out->unstaged = true;
        return false;
    }
    out->sge.lkey = out->staging.mr->lkey;
    out->end_here = (char *)out->staging.piece.memory + (size_t)(out->head + 1) * out->size;
    return true;
}

/* Whether the message may go by the ring now; *end: where its image ends. */
static inline bool ring_takes(struct ib_module *m, struct ib_peer *p, struct ib_ring_out *out, uint32_t total,
                              uint32_t bytes, char **end)
{
    const struct ib_qp *q = &p->q[IB_HIGH];

    /* While messages of low priority are in flight credits bound what overtakes them. */
    if (ST_UNLIKELY(total > out->most || ib_qp_room(q) <= IB_CONTROL_SENDS || p->reorder.on ||
                    (out->detect == IB_DETECT_IMM && q->credits == 0)))
        return false;
    if (ST_LIKELY(bytes <= m->brief.most)) {
        *end = m->eager.image + sizeof m->eager.image;
        return true;
    }
    if (!out->staging.mr && !ring_stage(m, out))
        return false;
    *end = out->end_here;
    return true;
}

static inline void ring_advance_out(struct ib_ring_out *out)
{
    out->end += out->size;
    out->end_here += out->size;
    if (ST_UNLIKELY(++out->head == out->n)) {
        out->head = 0;
        out->end = out->base + out->size;
        out->end_here = out->staging.mr ? (char *)out->staging.piece.memory + out->size : NULL;
        out->flag = (uint8_t)(ib_lap_flag(0) + ib_lap_flag(1) - out->flag);
    }
}

/* Two words: the head with all that is owed, as in send_brief; length, number and flag. */
static inline void ring_put_footer(struct ib_peer *p, char *end, enum st_am am, uint32_t hdr_len, uint32_t total,
                                   uint8_t flag)
{
    uint64_t head = ib_take_all_owed(p) << 16 | (uint32_t)am | hdr_len << 8;
    uint64_t rest = total | (uint64_t)(uint16_t)p->q[IB_HIGH].posted << 16 | (uint64_t)flag << 56;

    memcpy(end - IB_FOOTER, &head, sizeof head);
    memcpy(end - sizeof rest, &rest, sizeof rest);
}

static __attribute__((noinline)) int ring_failed(struct ib_module *m, struct ib_peer *p, const char *end,
                                                 unsigned flags)
{
    struct ib_head head;

    memcpy(&head, end - IB_FOOTER, sizeof head);
    lead_give_back(p, &head);
    p->q[IB_HIGH].posted--;
    p->q[IB_HIGH].signals -= (flags & IBV_SEND_SIGNALED) != 0;
    m->count.again++;
    return STRATA_ERR_AGAIN;
}

static inline int ring_post(struct ib_peer *p, struct ib_ring_out *out, const char *end, uint32_t bytes, bool copied)
{
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ibv_send_wr *bad;

    out->sge.addr = (uintptr_t)end - bytes;
    out->sge.length = bytes;
    out->wr.wr.rdma.remote_addr = out->end - bytes;
    out->wr.send_flags = copied ? IBV_SEND_INLINE : 0;
    if (ST_UNLIKELY(((q->posted + 1) & q->every) == 0)) {
        out->wr.send_flags |= IBV_SEND_SIGNALED;
        ib_posted(q, NULL, IB_SENT_NOTHING);
    } else {
        q->posted++;
    }
    return ibv_post_send(q->qp, &out->wr, &bad);
}

static inline __attribute__((always_inline)) int ring_write(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                            uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_ring_out *out = p->ring_out;
    uint32_t total = hdr_len + len, bytes = ib_slot_bytes(total, out->detect == IB_DETECT_SEAL);
    char *end;

    if (ST_UNLIKELY(!ring_takes(m, p, out, total, bytes, &end))) {
        m->count.ring_around++;
        return ib_send(ep, am, hdr, hdr_len, data, len);
    }
    if (ST_UNLIKELY(m->batch.n)) /* nothing overtakes what waits */
        ib_batch_post(m);
    st_copy(end - bytes, hdr, hdr_len);
    st_copy(end - bytes + hdr_len, data, len);
    ring_put_footer(p, end, am, hdr_len, total, out->flag);
    if (out->detect == IB_DETECT_SEAL && bytes > IB_LINE)
        ib_seal(end, total, out->flag);
    if (ST_UNLIKELY(ring_post(p, out, end, bytes, bytes <= m->brief.most) != 0))
        return ring_failed(m, p, end, out->wr.send_flags);
    p->slots--;
    if (ST_UNLIKELY(out->detect == IB_DETECT_IMM))
        p->q[IB_HIGH].credits--;
    ring_advance_out(out);
    m->count.ring_sent++;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
    return STRATA_OK;
}

#define LOOK_EACH 4u /* messages without a slot, of which one looks for some */

/* Of a peer without free slots: whether it has returned some. A burst of sends polls nothing. */
static bool ring_look(struct ib_peer *p)
{
    struct ib_ring_out *out = p->ring_out;

    if (out->left || p->state != IB_UP || (out->around++ & (LOOK_EACH - 1)) != 0)
        return false;
    ib_reclaim(ib_module_of(p));
    if (p->slots)
        out->around = 0;
    return p->slots != 0;
}

static __attribute__((noinline)) int ring_send_any(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                   uint32_t hdr_len, const void *data, uint32_t len)
{
    return ring_write(ep, am, hdr, hdr_len, data, len);
}

static int ring_send_usual(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                           const void *data, uint32_t len);

/* Without a slot the message goes by send and receive, as all do that the ring does not take. */
static __attribute__((noinline)) int ring_send_around(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                      uint32_t hdr_len, const void *data, uint32_t len)
{
    if (ring_look(ib_peer(ep)))
        return ring_send_usual(ep, am, hdr, hdr_len, data, len);
    return ib_send(ep, am, hdr, hdr_len, data, len);
}

static inline int ring_post_usual(struct ib_peer *p, struct ib_ring_out *out, const char *at, uint32_t bytes)
{
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ibv_send_wr *bad;

    out->sge.addr = (uintptr_t)at;
    out->sge.length = bytes;
    out->wr.wr.rdma.remote_addr = out->end - bytes;
    out->wr.send_flags = IBV_SEND_INLINE;
    if (ST_UNLIKELY(((q->posted + 1) & q->every) == 0)) {
        out->wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        ib_posted(q, NULL, IB_SENT_NOTHING);
    } else {
        q->posted++;
    }
    return ibv_post_send(q->qp, &out->wr, &bad);
}

/* Most messages are the PML's and short: of these nothing has to be computed but where they begin. */
static __attribute__((noinline)) int ring_send_usual(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                     uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_ring_out *out = p->ring_out;
    uint32_t bytes = ib_slot_round(len) + IB_USUAL_HDR + IB_FOOTER;
    char *end = m->eager.image + sizeof m->eager.image;

    if (ST_UNLIKELY(p->slots == 0))
        return ring_send_around(ep, am, hdr, hdr_len, data, len);
    if (ST_UNLIKELY(hdr_len != IB_USUAL_HDR || len >= m->brief.most_data || len > out->usual || !out->takes_usual ||
                    ib_qp_room(&p->q[IB_HIGH]) <= IB_CONTROL_SENDS || p->reorder.on))
        return ring_send_any(ep, am, hdr, hdr_len, data, len);
    if (len > IB_USUAL_MOST)
        __builtin_unreachable(); /* tells the compiler that no long copy is needed */
    st_copy(end - bytes, hdr, IB_USUAL_HDR);
    st_copy(end - bytes + IB_USUAL_HDR, data, len);
    ring_put_footer(p, end, am, IB_USUAL_HDR, IB_USUAL_HDR + len, out->flag);
    if (ST_UNLIKELY(ring_post_usual(p, out, end - bytes, bytes) != 0))
        return ring_failed(m, p, end, out->wr.send_flags);
    p->slots--;
    ring_advance_out(out);
    m->count.ring_sent++;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
    return STRATA_OK;
}

/* Two calls in the last place: no registers are kept for a peer that has granted no ring. */
int ib_send_eager(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len)
{
    if (!ib_peer(ep)->ring_out)
        return ib_send(ep, am, hdr, hdr_len, data, len);
    return ring_send_usual(ep, am, hdr, hdr_len, data, len);
}
