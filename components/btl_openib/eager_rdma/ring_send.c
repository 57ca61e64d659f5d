/* Sending by a ring: the hot path. */
#include <arpa/inet.h>
#include <strata/sdk/btl_hints.h>
#include "data/completion.h"
#include "data/send.h"
#include "data/send_inl.h"
#include "module.h"
#include "eager_rdma/ring_aim.h"

/* ---- where the next message goes ---- */

/* Remote address behind the next slot. */
static inline uint64_t ring_end(const struct ib_ring_out *out)
{
    return out->wr.wr.rdma.remote_addr + IB_LINE - out->size;
}

/* The next message goes k slots below `end`, or to slot 0. */
static inline void ring_advance(struct ib_ring_out *out, uint64_t end, uint32_t k)
{
    end -= out->size * k;
    if (ST_UNLIKELY(end == out->bottom)) {
        end += out->size * out->n;
        out->blank =
            ib_footer_word((uint8_t)(ib_lap_flag(0) + ib_lap_flag(1) - (out->blank >> IB_FOOTER_FLAG_AT)), 0, 0);
    }
    ib_ring_aim(out, end);
}

/* Slots that a message takes. */
static inline uint32_t ring_slots(const struct ib_ring_out *out, uint32_t bytes)
{
    if (bytes <= out->size)
        return 1;
    return ib_slots_of(bytes, (uint32_t)out->size, (uint32_t)(ring_end(out) - out->bottom) / (uint32_t)out->size);
}

/* ---- the plan ---- */

/* Unsignalled posts that may follow. */
static inline uint32_t ring_unsignalled(const struct ib_qp *q, const struct ib_ring_out *out)
{
    uint32_t since = q->posted - q->sent[(q->signals - 1) & q->mask].up_to;

    if (out->unsignalled == 0)
        return q->every - (q->posted & q->every);
    return since < out->unsignalled ? out->unsignalled - since : 0;
}

/* Up to which further post those of short messages are alike. The last slot is not among theirs. */
static inline void ring_plan(const struct ib_peer *p, struct ib_ring_out *out, uint32_t unsignalled)
{
    const struct ib_qp *q = &p->q[IB_HIGH];
    uint32_t room = ib_qp_room(q), n = unsignalled;
    uint64_t left = ring_end(out) - out->bottom;

    room = room > IB_CONTROL_SENDS ? room - IB_CONTROL_SENDS : 0;
    if (n > room)
        n = room;
    if (n > p->slots)
        n = p->slots;
    if (ST_UNLIKELY(n * out->size >= left))
        n = (uint32_t)left / (uint32_t)out->size - 1;
    out->plain = q->posted + (out->open ? n : 0);
}

/* Whether a short message is posted as the one before. */
static inline bool ring_is_planned(const struct ib_peer *p, const struct ib_ring_out *out)
{
    return (int32_t)(out->plain - p->q[IB_HIGH].posted) > 0;
}

/* ---- notes ---- */

/* The footer of a message: all that is owed; length, number, client and flag. */
static inline void ring_put_footer(struct ib_peer *p, char *end, uint64_t word)
{
    uint64_t owed = ib_one_word(ib_take_all_owed(p));

    word = ib_one_word(word + ((uint64_t)(uint16_t)p->q[IB_HIGH].posted << IB_FOOTER_NUMBER_AT));
    memcpy(end - IB_FOOTER, &owed, sizeof owed);
    memcpy(end - sizeof word, &word, sizeof word);
}

static inline void ring_count(struct ib_module *m, uint32_t len)
{
    m->count.ring_sent++;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
}

/* A post was noted, and refused: the message that was built before `end` takes no slots. */
static int ring_unpost(struct ib_peer *p, const char *end)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_head owed;
    uint64_t word;

    memcpy(&word, end - IB_FOOTER, sizeof word);
    owed = ib_footer_head(word);
    lead_give_back(p, &owed);
    q->posted--;
    q->signals -= (out->wr.send_flags & IBV_SEND_SIGNALED) != 0;
    out->plain = q->posted; /* it may have been the one that is signalled */
    m->count.again++;
    return STRATA_ERR_AGAIN;
}

/* ---- any message ---- */

/* Staged messages lie in the slots that correspond; the memory is made with the first of them. */
static __attribute__((noinline)) bool ring_stage(struct ib_module *m, struct ib_ring_out *out)
{
    if (out->unstaged || ib_ring_memory_get(m, ib_ring_bytes(out->n, (uint32_t)out->size, out->span),
                                            IBV_ACCESS_LOCAL_WRITE, &out->staging) != STRATA_OK) {
        out->unstaged = true;
        return false;
    }
    out->sge.lkey = out->staging.mr->lkey;
    return true;
}

/* Whether the message may go by the ring now; *end: where its image ends. */
static inline bool ring_takes(struct ib_module *m, struct ib_peer *p, struct ib_ring_out *out, uint32_t total,
                              uint32_t bytes, char **end)
{
    const struct ib_qp *q = &p->q[IB_HIGH];

    /* While messages of low priority are in flight credits bound what overtakes them. */
    if (ST_UNLIKELY(total > out->most || p->reorder.on || (out->detect == IB_DETECT_IMM && q->credits == 0)))
        return false;
    if (ST_UNLIKELY(m->batch.on && bytes > m->brief.most)) /* a batch takes it */
        return false;
    if (ib_qp_room(q) <= IB_CONTROL_SENDS)
        ib_reclaim(m);
    if (ST_UNLIKELY(ib_qp_room(q) <= IB_CONTROL_SENDS || ring_slots(out, bytes) > p->slots))
        return false;
    if (ST_LIKELY(bytes <= m->brief.most)) {
        *end = ib_ring_image_end(m);
        return true;
    }
    if (!out->staging.mr && !ring_stage(m, out))
        return false;
    *end = (char *)out->staging.piece.memory + (ring_end(out) - out->base);
    return true;
}

/* Posts the message of `bytes` that was built before `end`. Signalled: so that room comes back. */
static int ring_post(struct ib_peer *p, const char *end, uint32_t bytes, bool inlined, bool signal)
{
    struct ib_ring_out *out = p->ring_out;
    struct ib_qp *q = &p->q[IB_HIGH];
    uint64_t remote_end = ring_end(out);
    int rc = STRATA_OK;

    out->sge.addr = (uintptr_t)end - bytes;
    out->sge.length = bytes;
    out->wr.wr.rdma.remote_addr = remote_end - bytes;
    out->wr.send_flags = (inlined ? IBV_SEND_INLINE : 0) | (signal ? IBV_SEND_SIGNALED : 0);
    if (signal)
        ib_posted(q, NULL, IB_SENT_NOTHING);
    else
        q->posted++;
    if (ST_UNLIKELY(ibv_post_send(q->qp, &out->wr, &out->bad) != 0)) {
        rc = ring_unpost(p, end);
        ib_ring_aim(out, remote_end);
        return rc;
    }
    return rc;
}

/* A message to a peer with a ring goes by send and receive. */
static int ring_send_around(struct ib_peer *p, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                            uint32_t len)
{
    int rc = ib_send(&p->ep, am, hdr, hdr_len, data, len);

    ib_module_of(p)->count.ring_around += rc == STRATA_OK && !p->ring_out->left;
    return rc;
}

/* Any message that the ring takes; all others go by send and receive. */
static int ring_write(struct ib_peer *p, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                      uint32_t len)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    struct ib_qp *q = &p->q[IB_HIGH];
    uint32_t total = hdr_len + len, bytes = ib_slot_bytes(total, out->detect == IB_DETECT_SEAL), k;
    uint64_t remote_end = ring_end(out);
    bool signal;
    char *end;

    if (ST_UNLIKELY(!ring_takes(m, p, out, total, bytes, &end)))
        return ring_send_around(p, am, hdr, hdr_len, data, len);
    if (ST_UNLIKELY(m->batch.n)) /* nothing overtakes what waits */
        ib_batch_post(m);
    k = ring_slots(out, bytes);
    st_copy(end - bytes, hdr, hdr_len);
    st_copy(end - bytes + hdr_len, data, len);
    ring_put_footer(p, end,
                    (out->blank & (uint64_t)UINT8_MAX << IB_FOOTER_FLAG_AT) | (uint64_t)hdr_len << IB_FOOTER_HDR_AT |
                        (uint64_t)am << IB_FOOTER_AM_AT | total);
    if (out->detect == IB_DETECT_SEAL && bytes > IB_LINE)
        ib_seal(end, total, (uint8_t)(out->blank >> IB_FOOTER_FLAG_AT));
    signal = ((q->posted + 1) & q->every) == 0 || (out->open && !ring_is_planned(p, out));
    if (ring_post(p, end, bytes, bytes <= m->brief.most, signal) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    q->credits -= out->detect == IB_DETECT_IMM;
    p->slots = (uint16_t)(p->slots - k);
    ring_count(m, len);
    ring_advance(out, remote_end, k);
    ring_plan(p, out, ring_unsignalled(q, out));
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

/* ---- short messages with a header of IB_USUAL_HDR ---- */

static __attribute__((noinline)) int ring_line_refused(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);
    const char *end = ib_ring_image_end(m);
    uint64_t word;

    memcpy(&word, end - sizeof word, sizeof word);
    p->slots++;
    p->ring_out->wr.wr.rdma.remote_addr += p->ring_out->size;
    m->count.ring_sent--;
    m->btl.bytes_sent -= (uint16_t)word - IB_USUAL_HDR;
    m->btl.messages_sent--;
    return ring_unpost(p, end);
}

/* One of a single line: nothing has to be computed but its footer. All is noted before the post, which comes last. */
static inline __attribute__((always_inline)) int ring_write_line(struct ib_peer *p, enum st_am am, const void *hdr,
                                                                 const void *data, uint32_t len, bool signal)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    char *end = ib_ring_image_end(m);
    uint64_t header[IB_USUAL_HDR / sizeof(uint64_t)];
    int rc;

    if (len > IB_LINE_DATA)
        __builtin_unreachable(); /* tells the compiler that no long copy is needed */
    memcpy(header, hdr, sizeof header);
    for (uint32_t i = 0; i < IB_USUAL_HDR / sizeof(uint64_t); i++)
        header[i] = ib_one_word(header[i]);
    memcpy(end - IB_LINE, header, sizeof header);
    st_copy(end - IB_LINE + IB_USUAL_HDR, data, len);
    ring_put_footer(p, end, out->blank + ((uint64_t)am << IB_FOOTER_AM_AT) + len);
    if (signal)
        ib_posted(&p->q[IB_HIGH], NULL, IB_SENT_NOTHING);
    else
        p->q[IB_HIGH].posted++;
    p->slots--;
    out->wr.wr.rdma.remote_addr -= out->size;
    ring_count(m, len);
    rc = ibv_post_send(p->q[IB_HIGH].qp, &out->wr, &out->bad);
    if (ST_UNLIKELY(rc != 0))
        return ring_line_refused(out->peer);
    return rc;
}
_Static_assert(STRATA_OK == 0, "what ibv_post_send returns can be returned");

/* One of a single line that is not posted as the one before: signalled when no unsignalled one may follow, so that room
 * comes back; or in the last slot. */
static inline int ring_line_alone(struct ib_peer *p, enum st_am am, const void *hdr, const void *data, uint32_t len,
                                  uint32_t unsignalled)
{
    struct ib_ring_out *out = p->ring_out;
    int rc;

    if (unsignalled) {
        rc = ring_write_line(p, am, hdr, data, len, false);
    } else {
        out->wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        rc = ring_write_line(p, am, hdr, data, len, true);
    }
    out->wr.send_flags = IBV_SEND_INLINE;
    if (ST_UNLIKELY(ring_end(out) == out->bottom))
        ring_advance(out, out->bottom, 0);
    ring_plan(p, out, rc == STRATA_OK ? ring_unsignalled(&p->q[IB_HIGH], out) : 0);
    return rc;
}

/* One of several lines, in one slot. */
static int ring_write_usual(struct ib_peer *p, enum st_am am, const void *hdr, const void *data, uint32_t len)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_ring_out *out = p->ring_out;
    uint32_t bytes = ((len + 7u) & ~7u) + IB_USUAL_HDR + IB_FOOTER;
    uint64_t remote_end = ring_end(out);
    char *end = ib_ring_image_end(m);

    if (len > IB_USUAL_MOST)
        __builtin_unreachable();
    st_copy(end - bytes, hdr, IB_USUAL_HDR);
    st_copy(end - bytes + IB_USUAL_HDR, data, len);
    ring_put_footer(p, end, out->blank + ((uint64_t)am << IB_FOOTER_AM_AT) + len);
    if (ring_post(p, end, bytes, true, false) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    p->slots--;
    ring_count(m, len);
    ib_ring_aim(out, remote_end - out->size);
    return STRATA_OK;
}

/* Sends a message outside the plan, or one that needs several lines. */
static __attribute__((noinline)) int ring_send_any(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                   uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_ring_out *out = p->ring_out;
    bool alike = hdr_len == IB_USUAL_HDR && m->brief.most_line && out->open;
    uint32_t unsignalled = 0;

    if ((int32_t)(out->burst.at - p->q[IB_HIGH].posted) <= 0 && ib_burst_look(p))
        return ib_send(ep, am, hdr, hdr_len, data, len);
    if (alike && !ring_is_planned(p, out)) { /* what has become of the posts of before? */
        unsignalled = ring_unsignalled(&p->q[IB_HIGH], out);
        if (ib_qp_room(&p->q[IB_HIGH]) <= IB_CONTROL_SENDS + unsignalled)
            ib_reclaim(m);
        if (unsignalled)
            ring_plan(p, out, unsignalled);
    }
    if (alike && ring_is_planned(p, out)) {
        if (len <= IB_LINE_DATA)
            return ring_write_line(p, am, hdr, data, len, false);
        if (len < out->usual)
            return ring_write_usual(p, am, hdr, data, len);
    }
    if (p->slots == 0 && !ring_look(p))
        return ring_send_around(p, am, hdr, hdr_len, data, len);
    if (alike && len <= IB_LINE_DATA && ib_qp_room(&p->q[IB_HIGH]) > IB_CONTROL_SENDS)
        return ring_line_alone(p, am, hdr, data, len, unsignalled);
    return ring_write(p, am, hdr, hdr_len, data, len);
}

/* Unusual cases are a call in the last place, so that no registers are kept for them. */
int ib_send_eager(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    const struct ib_ring_out *out = p->ring_out;

    if (!out)
        return ib_send(ep, am, hdr, hdr_len, data, len);
    if (ST_UNLIKELY(hdr_len != IB_USUAL_HDR || len >= ib_module(ep->btl)->brief.most_line || !ring_is_planned(p, out)))
        return ring_send_any(ep, am, hdr, hdr_len, data, len);
    return ring_write_line(p, am, hdr, data, len, false);
}
