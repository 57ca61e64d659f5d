/* Sending: the hot path. */
#include "data/send_inl.h"

void ib_batch(struct st_btl *btl, bool on)
{
    struct ib_module *m = ib_module(btl);

    m->batch.on = on;
    m->brief.most_data = on ? 0 : m->brief.usual_data; /* nothing overtakes what waits */
    m->brief.most_line = on ? 0 : m->brief.usual_line;
    if (!on)
        ib_batch_post(m);
}

/* Not up, no credits, no room: begins the connection on the first call. */
__attribute__((noinline)) int ib_send_not_now(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    switch ((enum ib_state)p->state) {
    case IB_IDLE:
        if (m->closing)
            return STRATA_ERR_PEER;
        if (!ib_evict_for_connection(m, p))
            return STRATA_ERR_AGAIN;
        if (ib_conn_begin(p) == STRATA_ERR_UNREACHABLE)
            ib_peer_broken(p, "it cannot be reached"); /* reported from progress */
        return STRATA_ERR_AGAIN;
    case IB_GONE:
    case IB_FAILED:
        return STRATA_ERR_PEER;
    default:
        m->count.again++;
        return STRATA_ERR_AGAIN;
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
        rc = send_post_buffer(m, q, b, b->data + before, len, &lead.imm);
    } else {
        lead_put(&lead, b->data, hdr, hdr_len);
        rc = send_post_buffer(m, q, b, b->data, before + len, NULL);
    }
    if (rc != STRATA_OK) {
        lead_give_back(q->peer, &lead.head);
        return STRATA_ERR_AGAIN;
    }
    lead_went(m, q, &lead, hdr);
    *(q->priority == IB_HIGH ? &m->count.buffered : &m->count.low) += 1;
    send_count(m, q, len);
    send_note_crowd(q);
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
    lead_give_back(q->peer, &head);
    send_unpost(m);
    return STRATA_ERR_AGAIN;
}

/* A buffer for a message, when there is room for it; NULL: *rc says why not. */
static struct ib_buffer *send_get_buffer(struct ib_module *m, struct ib_peer *p, const struct ib_qp *q, int *rc)
{
    struct ib_buffer *b = NULL;

    *rc = STRATA_ERR_AGAIN;
    if (send_has_room(p, q))
        b = ib_buffer_get(&m->q[q->priority].sends);
    else
        *rc = ib_send_not_now(p);
    return b;
}

static __attribute__((noinline)) int send_copied(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                                 uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module_of(p);
    struct ib_qp *q = send_qp(m, p, IB_HEAD + hdr_len + len);
    int rc;
    struct ib_buffer *b = send_get_buffer(m, p, q, &rc);

    if (!b)
        return rc;
    st_copy(b->data + IB_HEAD + hdr_len, data, len);
    return send_buffer(m, q, am, hdr, hdr_len, b, len);
}

/* Header and data are built behind the head; their lengths are constants where they can be. */
static inline __attribute__((always_inline)) int send_brief(struct ib_peer *p, enum st_am am, const void *hdr,
                                                            uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_qp *q = &p->q[IB_HIGH];
    /* struct ib_head, as one word. */
    uint64_t head = (uint32_t)am | hdr_len << 8 | ib_take_all_owed(p) << 16;

    memcpy(m->brief.image, &head, IB_HEAD);
    st_copy(m->brief.image + IB_HEAD, hdr, hdr_len);
    st_copy(m->brief.image + IB_HEAD + hdr_len, data, len);
    send_count(m, q, len);
    if (ST_UNLIKELY(send_post_brief(m, q, IB_HEAD + hdr_len + len, false) != 0))
        return send_failed(m);
    return STRATA_OK;
}

/* All unusual cases. Completions and credits may have come unseen: a burst of sends polls nothing. */
static __attribute__((noinline)) int send_any(struct st_btl_endpoint *ep, enum st_am am, const void *hdr,
                                              uint32_t hdr_len, const void *data, uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_HIGH];

    if (IB_HEAD + hdr_len + len > m->brief.most)
        return send_copied(ep, am, hdr, hdr_len, data, len);
    if (!send_has_room(p, q))
        return ib_send_not_now(p);
    send_note_crowd(q);
    ib_batch_post(m);
    return send_brief(p, am, hdr, hdr_len, data, len);
}

/* Unusual cases are a call in the last place, so that no registers are kept for them. */
int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    const struct ib_module *m = ib_module(ep->btl);

    if (ST_UNLIKELY(hdr_len != IB_USUAL_HDR || len >= m->brief.most_data || !send_has_ample_room(&p->q[IB_HIGH])))
        return send_any(ep, am, hdr, hdr_len, data, len);
    if (len > IB_USUAL_MOST)
        __builtin_unreachable(); /* most_data is at most one more: tells the compiler that no long copy is needed */
    return send_brief(p, am, hdr, IB_USUAL_HDR, data, len);
}

int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    uint32_t len = (uint32_t)payload->length;
    struct ib_qp *q = send_qp(m, p, IB_HEAD + hdr_len + len);
    int rc;
    struct ib_buffer *b = send_get_buffer(m, p, q, &rc);

    if (!b)
        return rc;
    if (p->ring_out)
        p->ring_out->burst.joined = true;
    rc = st_payload_gather(payload, b->data + IB_HEAD + hdr_len);
    if (rc != STRATA_OK) {
        ib_buffer_put(&m->q[q->priority].sends, b);
        return rc;
    }
    return send_buffer(m, q, am, hdr, hdr_len, b, len);
}

int ib_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = send_qp(m, p, IB_HEAD + hdr_len + len);
    struct ibv_sge sge[2];
    struct ib_lead lead;
    struct ib_zcopy *z;

    if (!send_has_room(p, q))
        return ib_send_not_now(p);
    z = ib_zcopy_make(m, data, len, op);
    if (!z) {
        int rc = ib_send(ep, am, hdr, hdr_len, data, len);
        return rc == STRATA_OK ? 1 : rc;
    }
    lead_make(q, am, hdr, hdr_len, len, &lead);
    lead_put(&lead, z->head->data, hdr, hdr_len);
    sge[0] = (struct ibv_sge){(uintptr_t)z->head->data, IB_HEAD + hdr_len, z->head->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t)data, len, ((const struct ibv_mr *)z->memory->handle)->lkey};
    if (ST_UNLIKELY(send_post_signalled(m, q, sge + lead.as_imm, 2 - lead.as_imm, lead.as_imm ? &lead.imm : NULL, z,
                                        IB_SENT_ZCOPY) != STRATA_OK)) {
        lead_give_back(p, &lead.head);
        (void)ib_zcopy_free(m, z);
        return STRATA_ERR_AGAIN;
    }
    lead_went(m, q, &lead, hdr);
    m->count.zcopy++;
    send_count(m, q, len);
    return STRATA_OK;
}
