/* Sending by a ring: the hot path. */
#include <arpa/inet.h>
#include <strata/sdk/btl_hints.h>
#include "data/completion.h"
#include "data/send.h"
#include "data/send_inl.h"
#include "module.h"

/* Staged messages lie in the slots that correspond; the memory is made with the first of them. */
static __attribute__((noinline)) bool ring_stage(struct ib_module *m, struct ib_ring_out *out)
{
    if (out->unstaged || ib_ring_memory_get(m, ib_ring_bytes(out->n, out->size, out->span), IBV_ACCESS_LOCAL_WRITE,
                                            &out->staging) != STRATA_OK) {
        out->unstaged = true;
        return false;
    }
    out->sge.lkey = out->staging.mr->lkey;
    return true;
}

/* Slots that a message takes. */
static inline uint32_t ring_slots(const struct ib_ring_out *out, uint32_t bytes)
{
    return bytes <= out->size ? 1 : ib_slots_of(bytes, out->size, (uint32_t)(out->end - out->bottom) / out->size);
}

/* Whether the message may go by the ring now; *end: where its image ends. */
static inline bool ring_takes(struct ib_module *m, struct ib_peer *p, struct ib_ring_out *out, uint32_t total,
                              uint32_t bytes, char **end)
{
    const struct ib_qp *q = &p->q[IB_HIGH];

    /* While messages of low priority are in flight credits bound what overtakes them. */
    if (ST_UNLIKELY(total > out->most || p->reorder.on || (out->detect == IB_DETECT_IMM && q->credits == 0)))
        return false;
    if (ib_qp_room(q) <= IB_CONTROL_SENDS)
        ib_reclaim(m);
    if (ST_UNLIKELY(ib_qp_room(q) <= IB_CONTROL_SENDS || ring_slots(out, bytes) > p->slots))
        return false;
    if (ST_LIKELY(bytes <= m->brief.most)) {
        *end = m->eager.image + sizeof m->eager.image;
        return true;
    }
    if (!out->staging.mr && !ring_stage(m, out))
        return false;
    *end = (char *)out->staging.piece.memory + (out->end - out->base);
    return true;
}

/* Two words: the head with all that is owed, as in send_brief; length, number and flag. */
static inline void ring_put_footer(struct ib_peer *p, char *end, enum st_am am, uint32_t hdr_len, uint32_t total,
                                   uint64_t mark)
{
    uint64_t head = ib_take_all_owed(p) << 16 | (uint32_t)am | hdr_len << 8;
    uint64_t rest = mark | (uint64_t)(uint16_t)p->q[IB_HIGH].posted << 16 | total;

    memcpy(end - IB_FOOTER, &head, sizeof head);
    memcpy(end - sizeof rest, &rest, sizeof rest);
}

static inline void ring_turn(struct ib_ring_out *out)
{
    out->mark = ((uint64_t)(ib_lap_flag(0) + ib_lap_flag(1)) << 56) - out->mark;
}

/* Notes a message in the next k slots as written, so that nothing is left to do when it was posted. */
static inline void ring_note(struct ib_module *m, struct ib_peer *p, struct ib_ring_out *out, uint32_t k, uint32_t len)
{
    p->slots = (uint16_t)(p->slots - k);
    out->end -= (uint64_t)out->size * k;
    if (ST_UNLIKELY(out->end == out->bottom)) {
        out->end += (uint64_t)out->size * out->n;
        ring_turn(out);
    }
    m->count.ring_sent++;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
}

/* The message that was built before `end` was noted, and not posted. */
static __attribute__((noinline)) int ring_failed(struct ib_peer *p, const char *end, uint32_t k)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    struct ib_footer footer;

    memcpy(&footer, end - IB_FOOTER, sizeof footer);
    lead_give_back(p, &footer.head);
    p->q[IB_HIGH].posted--;
    p->q[IB_HIGH].signals -= (out->wr.send_flags & IBV_SEND_SIGNALED) != 0;
    p->q[IB_HIGH].credits += out->detect == IB_DETECT_IMM;
    out->plain = p->q[IB_HIGH].posted; /* it may have been the one that is signalled */
    p->slots = (uint16_t)(p->slots + k);
    if (out->end == out->bottom + (uint64_t)out->size * out->n) {
        out->end = out->bottom;
        ring_turn(out);
    }
    out->end += (uint64_t)out->size * k;
    m->count.ring_sent--;
    m->btl.bytes_sent -= footer.len - (uint32_t)footer.head.hdr_len;
    m->btl.messages_sent--;
    m->count.again++;
    return STRATA_ERR_AGAIN;
}

/* Unsignalled posts that may follow a signalled one. With as many more as others may add until one of theirs is
 * signalled they do not fill the send queue. */
static inline uint32_t ring_unsignalled(const struct ib_qp *q)
{
    uint32_t most = q->depth - IB_CONTROL_SENDS - 1;

    return most > 2 * q->every ? most - q->every : q->every - (q->posted & q->every);
}

/* After a post: up to which further one those of short messages are alike. */
static inline void ring_plan(const struct ib_peer *p, struct ib_ring_out *out, bool signalled)
{
    const struct ib_qp *q = &p->q[IB_HIGH];
    uint32_t room = ib_qp_room(q), n = signalled ? ring_unsignalled(q) : out->plain - q->posted;

    room = room > IB_CONTROL_SENDS ? room - IB_CONTROL_SENDS : 0;
    if (n > room)
        n = room;
    if (n > p->slots)
        n = p->slots;
    out->plain = q->posted + n;
    out->wr.send_flags = IBV_SEND_INLINE;
}

/* Whether a short message is posted as the one before. */
static inline bool ring_is_planned(const struct ib_peer *p, const struct ib_ring_out *out)
{
    return (int32_t)(out->plain - p->q[IB_HIGH].posted) > 0;
}

static inline void ring_aim(struct ib_ring_out *out, const char *at, uint32_t bytes)
{
    out->sge.addr = (uintptr_t)at;
    out->sge.length = bytes;
    out->wr.wr.rdma.remote_addr = out->end - bytes;
}

/* Any message that the ring takes; all others go by send and receive. */
static int ring_write(struct ib_peer *p, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                      uint32_t len)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    struct ib_qp *q = &p->q[IB_HIGH];
    uint32_t total = hdr_len + len, bytes = ib_slot_bytes(total, out->detect == IB_DETECT_SEAL), k;
    bool signal;
    char *end;
    int rc;

    if (ST_UNLIKELY(!ring_takes(m, p, out, total, bytes, &end))) {
        m->count.ring_around++;
        return ib_send(&p->ep, am, hdr, hdr_len, data, len);
    }
    if (ST_UNLIKELY(m->batch.n)) /* nothing overtakes what waits */
        ib_batch_post(m);
    k = ring_slots(out, bytes);
    st_copy(end - bytes, hdr, hdr_len);
    st_copy(end - bytes + hdr_len, data, len);
    ring_put_footer(p, end, am, hdr_len, total, out->mark);
    if (out->detect == IB_DETECT_SEAL && bytes > IB_LINE)
        ib_seal(end, total, (uint8_t)(out->mark >> 56));
    ring_aim(out, end - bytes, bytes);
    out->wr.send_flags = bytes <= m->brief.most ? IBV_SEND_INLINE : 0;
    signal = ((q->posted + 1) & q->every) == 0 || !ring_is_planned(p, out);
    if (signal) {
        out->wr.send_flags |= IBV_SEND_SIGNALED;
        ib_posted(q, NULL, IB_SENT_NOTHING);
    } else {
        q->posted++;
    }
    q->credits -= out->detect == IB_DETECT_IMM;
    ring_note(m, p, out, k, len);
    rc = ST_LIKELY(ibv_post_send(q->qp, &out->wr, &out->bad) == 0) ? STRATA_OK : ring_failed(p, end, k);
    ring_plan(p, out, signal && rc == STRATA_OK);
    return rc;
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
    struct ib_peer *p = ib_peer(ep);

    if (p->slots == 0 && !ring_look(p))
        return ib_send(ep, am, hdr, hdr_len, data, len);
    return ring_write(p, am, hdr, hdr_len, data, len);
}

/* A short message with a header of IB_USUAL_HDR: of these nothing has to be computed but where they begin. */
static inline __attribute__((always_inline)) int ring_write_usual(struct ib_peer *p, enum st_am am, const void *hdr,
                                                                  const void *data, uint32_t len, bool signal)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    uint32_t bytes = ib_slot_round(len) + IB_USUAL_HDR + IB_FOOTER;
    char *end = m->eager.image + sizeof m->eager.image;

    if (len > IB_USUAL_MOST)
        __builtin_unreachable(); /* tells the compiler that no long copy is needed */
    ring_aim(out, end - bytes, bytes);
    st_copy(end - bytes, hdr, IB_USUAL_HDR);
    st_copy(end - bytes + IB_USUAL_HDR, data, len);
    ring_put_footer(p, end, am, IB_USUAL_HDR, IB_USUAL_HDR + len, out->mark);
    if (signal)
        ib_posted(&p->q[IB_HIGH], NULL, IB_SENT_NOTHING);
    else
        p->q[IB_HIGH].posted++;
    ring_note(m, p, out, 1, len);
    if (ST_UNLIKELY(ibv_post_send(p->q[IB_HIGH].qp, &out->wr, &out->bad) != 0))
        return ring_failed(p, m->eager.image + sizeof m->eager.image, 1);
    return STRATA_OK;
}

/* One that is not posted as the one before: signalled, so that room comes back. */
static __attribute__((noinline)) int ring_send_signalled(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                         uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_ring_out *out = p->ring_out;
    int rc;

    if (ib_qp_room(&p->q[IB_HIGH]) <= IB_CONTROL_SENDS)
        ib_reclaim(ib_module_of(p));
    if (p->slots == 0 || ib_qp_room(&p->q[IB_HIGH]) <= IB_CONTROL_SENDS)
        return ring_send_any(ep, am, hdr, hdr_len, data, len);
    out->wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    rc = ring_write_usual(p, am, hdr, data, len, true);
    ring_plan(p, out, rc == STRATA_OK);
    return rc;
}

/* Unusual cases are a call in the last place, so that no registers are kept for them. */
static __attribute__((noinline)) int ring_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                               uint32_t hdr_len, const void *data, uint32_t len)
{
    const struct ib_peer *p = ib_peer(ep);
    const struct ib_ring_out *out = p->ring_out;

    if (ST_UNLIKELY(hdr_len != IB_USUAL_HDR || len >= ib_module(ep->btl)->brief.most_data || len >= out->limit))
        return ring_send_any(ep, am, hdr, hdr_len, data, len);
    if (ST_UNLIKELY(!ring_is_planned(p, out)))
        return ring_send_signalled(ep, am, hdr, hdr_len, data, len);
    return ring_write_usual(ib_peer(ep), am, hdr, data, len, false);
}

int ib_send_eager(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len)
{
    if (!ib_peer(ep)->ring_out)
        return ib_send(ep, am, hdr, hdr_len, data, len);
    return ring_send(ep, am, hdr, hdr_len, data, len);
}
