/* Sending: the hot path, control messages, credits. */
#include "send_inl.h"

/* From a registered buffer, len bytes at `at`. */
static int post_buffer(struct ib_module *m, struct ib_qp *q, struct ib_buffer *b, const char *at, uint32_t len,
                       const uint32_t *imm)
{
    struct ibv_sge sge = {(uintptr_t)at, len, b->lkey};

    if (ST_LIKELY(post_signalled(m, q, &sge, 1, imm, b, IB_SENT_BUFFER) == STRATA_OK))
        return STRATA_OK;
    ib_buffer_put(&m->q[q->priority].sends, b);
    return STRATA_ERR_AGAIN;
}

/* What was built in m->brief.image. Signalled when asked to, and often enough that the send queue never fills with
 * unsignalled ones. */
static inline __attribute__((always_inline)) int post_brief(struct ib_module *m, struct ib_qp *q, uint32_t len,
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

/* It was noted as posted, so that nothing is left to be done when it is. */
static void unpost(struct ib_module *m)
{
    struct ib_qp *q = ib_sender(m->brief.wr.wr_id);

    q->posted--;
    if (m->brief.wr.send_flags & IBV_SEND_SIGNALED)
        q->signals--;
}

#define USUAL_MOST 64u /* st_copy is inline up to here */

void ib_brief_init(struct ib_short *b, uint32_t most)
{
    uint32_t data = most > IB_HEAD + IB_USUAL_HDR ? most - IB_HEAD - IB_USUAL_HDR : 0;

    b->sge = (struct ibv_sge){.addr = (uintptr_t)b->image};
    b->wr = (struct ibv_send_wr){.sg_list = &b->sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    b->most = most;
    b->usual_data = b->most_data = data < USUAL_MOST ? data : USUAL_MOST + 1;
}

void ib_batch(struct st_btl *btl, bool on)
{
    struct ib_module *m = ib_module(btl);

    m->list.on = on;
    m->brief.most_data = on ? 0 : m->brief.usual_data; /* nothing overtakes what waits */
    if (!on)
        ib_list_post(m);
}

/* Not up, no credits, no room: begins the connection on the first call. */
__attribute__((noinline)) int ib_send_not_now(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    switch ((enum ib_state)p->state) {
    case IB_IDLE:
        if (m->closing)
            return STRATA_ERR_PEER;
        if (!ib_room_for_connection(m, p))
            return STRATA_ERR_AGAIN;
        switch (ib_wire_up_begin(p)) {
        case STRATA_ERR_UNREACHABLE:
            ib_peer_broken(p, "it cannot be reached");
            return STRATA_ERR_AGAIN; /* the failure is reported from progress */
        default:
            return STRATA_ERR_AGAIN; /* out of memory: tried again */
        }
    case IB_GONE:
    case IB_FAILED:
        return STRATA_ERR_PEER;
    default:
        m->count.again++;
        return STRATA_ERR_AGAIN;
    }
}

__attribute__((noinline)) bool ib_send_room(struct ib_module *m, struct ib_peer *p, const struct ib_qp *q)
{
    if (p->state != IB_UP)
        return false;
    ib_reclaim(m);
    return has_room(q);
}

/* So many messages in that time are a burst. Those that come at longer intervals are no crowd, though nothing was heard
 * of the last ones: credits are said seldom. */
#define BURST_NS 1000000u

/* It is said once until credits come, so that who sends on all the same does so by the usual way. */
__attribute__((noinline)) void ib_crowded(struct ib_qp *q)
{
    struct ib_module *m = ib_module(q->peer->ep.btl);
    uint64_t now;
    bool burst;

    if (q->notice_at == 0)
        return;
    q->peer->usual = false;
    now = st_now_ns();
    burst = now - q->noticed_ns < BURST_NS;
    q->noticed_ns = now;
    q->notice_at = burst ? 0 : ib_crowd_from_now(m, q);
    if (!burst)
        return;
    q->peer->ep.caps |= ST_BTL_CROWDED;
    if (m->crowded_ns == 0)
        m->crowded_ns = now;
}

/* No news for longer than a burst takes: what was sent may well have been handled, and what comes now is no part of it.
 */
void ib_crowds_end(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    if (now - m->crowded_ns < BURST_NS)
        return;
    m->crowded_ns = 0;
    for (struct ib_peer *p = m->all; p; p = p->next) {
        if (!(p->ep.caps & ST_BTL_CROWDED))
            continue;
        if (now - p->q[IB_HIGH].noticed_ns < BURST_NS)
            m->crowded_ns = now;
        else
            ib_not_crowded(p);
    }
}

/* The data lie in the buffer, behind the place of head and header. */
static int send_buffer(struct ib_module *m, struct ib_qp *q, enum st_am am, const void *hdr, uint32_t hdr_len,
                       struct ib_buffer *b, uint32_t len)
{
    uint32_t before = IB_HEAD + hdr_len;
    struct ib_lead lead;
    int rc;

    lead_make(q, am, hdr, hdr_len, len, &lead);
    if (lead.as_imm) {
        rc = post_buffer(m, q, b, b->data + before, len, &lead.imm);
    } else {
        lead_put(&lead, b->data, hdr, hdr_len);
        rc = post_buffer(m, q, b, b->data, before + len, NULL);
    }
    if (rc != STRATA_OK) {
        give_back_owed(q->peer, &lead.head);
        return STRATA_ERR_AGAIN;
    }
    lead_went(m, q, &lead, hdr);
    *(q->priority == IB_HIGH ? &m->count.buffered : &m->count.low) += 1;
    sent(m, q, len);
    note_crowd(q);
    return STRATA_OK;
}

static __attribute__((noinline)) int send_failed(struct ib_module *m)
{
    struct ib_qp *q = ib_sender(m->brief.wr.wr_id);
    struct ib_head head;

    memcpy(&head, m->brief.image, sizeof head);
    q->credits++;
    m->btl.bytes_sent -= m->brief.sge.length - IB_HEAD - head.hdr_len;
    m->btl.messages_sent--;
    give_back_owed(q->peer, &head);
    unpost(m);
    return STRATA_ERR_AGAIN;
}

static __attribute__((noinline)) int send_long(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                               uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_qp *q = qp_for(m, p, IB_HEAD + hdr_len + len);
    struct ib_buffer *b;

    if (!has_room(q) && !ib_send_room(m, p, q))
        return ib_send_not_now(p);
    b = ib_buffer_get(&m->q[q->priority].sends);
    if (!b)
        return STRATA_ERR_AGAIN;
    st_copy(b->data + IB_HEAD + hdr_len, data, len);
    return send_buffer(m, q, am, hdr, hdr_len, b, len);
}

/* Header and data are built behind the head; then it goes. Header and data are of constant length where they can be. */
static inline __attribute__((always_inline)) int send_brief(struct ib_peer *p, enum st_am am, const void *hdr,
                                                            uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_qp *q = &p->q[IB_HIGH];
    uint32_t owed;
    uint64_t head;

    /* struct ib_head, as one word. */
    memcpy(&owed, p->owed, sizeof owed);
    memset(p->owed, 0, sizeof p->owed);
    head = (uint32_t)am | hdr_len << 8 | (uint64_t)owed << 16;
    memcpy(m->brief.image, &head, IB_HEAD);
    st_copy(m->brief.image + IB_HEAD, hdr, hdr_len);
    st_copy(m->brief.image + IB_HEAD + hdr_len, data, len);
    sent(m, q, len);
    if (ST_UNLIKELY(post_brief(m, q, IB_HEAD + hdr_len + len, false) != 0))
        return send_failed(m);
    return STRATA_OK;
}

/* Whatever is not usual. Completions and credits may have come that nobody has looked for: a burst of sends polls
 * nothing. */
static __attribute__((noinline)) int send_any(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                              uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_HIGH];

    if (IB_HEAD + hdr_len + len > m->brief.most)
        return send_long(ep, am, hdr, hdr_len, data, len);
    if (!has_room(q) && !ib_send_room(m, p, q))
        return ib_send_not_now(p);
    note_crowd(q);
    ib_list_post(m);
    return send_brief(p, am, hdr, hdr_len, data, len);
}

/* All that is not usual is a call in the last place, so that no registers are kept for it. */
int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    const struct ib_module *m = ib_module(ep->btl);

    if (ST_UNLIKELY(hdr_len != IB_USUAL_HDR || len >= m->brief.most_data || !has_ample_room(&p->q[IB_HIGH])))
        return send_any(ep, am, hdr, hdr_len, data, len);
    if (len > USUAL_MOST)
        __builtin_unreachable(); /* most_data is at most one more: tells the compiler that no long copy is needed */
    return send_brief(p, am, hdr, IB_USUAL_HDR, data, len);
}

int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    uint32_t len = (uint32_t)payload->length;
    struct ib_qp *q = qp_for(m, p, IB_HEAD + hdr_len + len);
    struct ib_buffer *b;
    int rc;

    if (!has_room(q) && !ib_send_room(m, p, q))
        return ib_send_not_now(p);
    b = ib_buffer_get(&m->q[q->priority].sends);
    if (!b)
        return STRATA_ERR_AGAIN;
    rc = st_payload_gather(payload, b->data + IB_HEAD + hdr_len);
    if (rc != STRATA_OK) {
        ib_buffer_put(&m->q[q->priority].sends, b);
        return rc;
    }
    return send_buffer(m, q, am, hdr, hdr_len, b, len);
}

/* Needs no credit: the receiver has buffers for these beyond what it grants, and they are few. */
int ib_send_control(struct ib_peer *p, enum ib_control kind)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_head head = {.am = IB_CONTROL, .control = (uint8_t)kind};
    bool last = kind != IB_CONTROL_CREDITS;
    struct ib_buffer *b;

    /* Behind our last word nothing is said but goodbye: it is the one whose completion is waited for. */
    if (p->state < IB_UP || p->state >= IB_CLOSED || (!last && p->state > IB_DRAINING))
        return STRATA_ERR_PEER;
    if (room(q) == 0)
        return STRATA_ERR_AGAIN;
    if (last)
        ib_head_set_low(&head, p->q[IB_LOW].messages);
    else
        take_owed(p, &head, UINT16_MAX);
    ib_list_post(m);
    if (IB_HEAD <= m->brief.most) {
        memcpy(m->brief.image, &head, IB_HEAD);
        if (post_brief(m, q, IB_HEAD, last) == 0)
            return STRATA_OK;
        unpost(m);
    } else if ((b = ib_buffer_get(&m->q[IB_HIGH].sends)) != NULL) {
        memcpy(b->data, &head, IB_HEAD);
        if (post_buffer(m, q, b, b->data, IB_HEAD, NULL) == STRATA_OK)
            return STRATA_OK;
    }
    if (!last)
        give_back_owed(p, &head);
    return STRATA_ERR_AGAIN;
}

void ib_owe(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (p->owing)
        return;
    p->owing = true;
    p->next_owing = m->owing;
    m->owing = p;
    ib_attend(m);
}

void ib_send_credits(struct ib_module *m)
{
    struct ib_peer *p = m->owing, *next;

    m->owing = NULL;
    for (; p; p = next) {
        next = p->next_owing;
        p->owing = false;
        /* Something else may have told it meanwhile. */
        if (p->owed[IB_HIGH] < p->q[IB_HIGH].window && p->owed[IB_LOW] < p->q[IB_LOW].window)
            continue;
        m->count.credits++;
        if (p->left || ib_send_control(p, IB_CONTROL_CREDITS) != STRATA_ERR_AGAIN)
            continue;
        p->owing = true;
        p->next_owing = m->owing;
        m->owing = p;
    }
}
