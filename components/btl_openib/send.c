/* Sending: the hot path, control messages, credits. */
#include "openib.h"

#include <string.h>
#include <strata/sdk/copy.h>

/* Work requests kept back for control messages. */
#define CONTROL_SENDS 4u
#define HEAD          ((uint32_t)sizeof(struct ib_head))

static inline uint32_t room(const struct ib_qp *q)
{
    return q->depth - (q->posted - q->done);
}

/* What the receiver may be told along with any message. */
static inline void take_owed(struct ib_peer *p, struct ib_head *h)
{
    for (int i = 0; i < IB_PRIORITIES; i++) {
        h->credits[i] = (uint16_t)p->q[i].owed;
        p->q[i].owed = 0;
    }
}

static void give_back_owed(struct ib_peer *p, const struct ib_head *h)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].owed += h->credits[i];
}

/* Signalled when asked to, and often enough that the send queue never fills with unsignalled ones. */
static inline int post(struct ib_qp *q, struct ibv_send_wr *wr, void *what, enum ib_sent_kind kind, bool signal)
{
    struct ib_sent *s = &q->sent[q->posted & (q->depth - 1)];
    struct ibv_send_wr *bad;

    signal = signal || q->unsignalled + 1 >= q->depth / 4;
    wr->wr_id = (uintptr_t)q | 1u;
    wr->opcode = IBV_WR_SEND;
    if (signal)
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (IB_UNLIKELY(ibv_post_send(q->qp, wr, &bad) != 0))
        return STRATA_ERR_AGAIN;
    s->what = what;
    s->kind = (uint8_t)kind;
    s->signalled = signal;
    q->unsignalled = signal ? 0 : q->unsignalled + 1;
    q->posted++;
    return STRATA_OK;
}

/* Not up, no credits, no room: begins the connection on the first call. */
static __attribute__((noinline)) int not_now(struct ib_peer *p)
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

static inline bool ready(const struct ib_qp *q)
{
    return IB_LIKELY(q->credits > 0 && room(q) > CONTROL_SENDS);
}

static inline void sent(struct ib_module *m, struct ib_qp *q, uint32_t len)
{
    q->credits--;
    m->btl.bytes_sent += len;
    m->btl.messages_sent++;
}

static int send_buffer(struct ib_module *m, struct ib_qp *q, const struct ib_head *head, const void *hdr,
                       struct ib_buffer *b, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)b->data, HEAD + head->hdr_len + len, b->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};

    memcpy(b->data, head, HEAD);
    memcpy(b->data + HEAD, hdr, head->hdr_len);
    /* Signalled: the buffer is wanted back soon, though this peer may have nothing more to say. */
    if (post(q, &wr, b, IB_SENT_BUFFER, true) != STRATA_OK) {
        ib_buffer_put(&m->q[q->priority].sends, b);
        return STRATA_ERR_AGAIN;
    }
    sent(m, q, len);
    return STRATA_OK;
}

static inline struct ib_qp *qp_for(struct ib_module *m, struct ib_peer *p, uint32_t total)
{
    if (total <= m->spec[IB_HIGH].size) {
        m->count.high++;
        return &p->q[IB_HIGH];
    }
    m->count.low++;
    return &p->q[IB_LOW];
}

static inline int send_inline(struct ib_module *m, struct ib_qp *q, struct ib_head *head, const void *hdr,
                              const void *data, uint32_t len)
{
    struct ibv_sge sge[3] = {{(uintptr_t)head, HEAD, 0}, {(uintptr_t)hdr, head->hdr_len, 0}, {(uintptr_t)data, len, 0}};
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = len ? 3 : 2, .send_flags = IBV_SEND_INLINE};

    if (post(q, &wr, NULL, IB_SENT_NOTHING, false) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    m->count.inlined++;
    sent(m, q, len);
    return STRATA_OK;
}

int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = qp_for(m, p, HEAD + hdr_len + len);
    struct ib_head head = {.am = (uint8_t)am, .hdr_len = (uint8_t)hdr_len};
    struct ib_buffer *b;
    int rc;

    if (IB_UNLIKELY(!ready(q)))
        return not_now(p);
    take_owed(p, &head);
    if (HEAD + hdr_len + len <= m->max_inline && q->priority == IB_HIGH) {
        rc = send_inline(m, q, &head, hdr, data, len);
    } else if ((b = ib_buffer_get(&m->q[q->priority].sends)) != NULL) {
        st_copy(b->data + HEAD + hdr_len, data, len);
        rc = send_buffer(m, q, &head, hdr, b, len);
    } else {
        rc = STRATA_ERR_AGAIN;
    }
    if (IB_UNLIKELY(rc != STRATA_OK))
        give_back_owed(p, &head);
    return rc;
}

int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    uint32_t len = (uint32_t)payload->length;
    struct ib_qp *q = qp_for(m, p, HEAD + hdr_len + len);
    struct ib_head head = {.am = (uint8_t)am, .hdr_len = (uint8_t)hdr_len};
    struct ib_buffer *b;
    int rc;

    if (IB_UNLIKELY(!ready(q)))
        return not_now(p);
    b = ib_buffer_get(&m->q[q->priority].sends);
    if (!b)
        return STRATA_ERR_AGAIN;
    rc = st_payload_gather(payload, b->data + HEAD + hdr_len);
    if (rc != STRATA_OK) {
        ib_buffer_put(&m->q[q->priority].sends, b);
        return rc;
    }
    take_owed(p, &head);
    rc = send_buffer(m, q, &head, hdr, b, len);
    if (rc != STRATA_OK)
        give_back_owed(p, &head);
    return rc;
}

/* Needs no credit: the receiver has buffers for these beyond what it grants, and they are few. */
int ib_send_control(struct ib_peer *p, enum ib_control kind)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_head head = {.am = IB_CONTROL, .control = (uint8_t)kind};
    bool last = kind != IB_CONTROL_CREDITS;
    struct ib_buffer *b;
    struct ibv_sge sge = {(uintptr_t)&head, HEAD, 0};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};
    int rc;

    if (p->state < IB_UP || p->state >= IB_CLOSED)
        return STRATA_ERR_PEER;
    if (room(q) == 0)
        return STRATA_ERR_AGAIN;
    if (HEAD > m->max_inline) {
        b = ib_buffer_get(&m->q[IB_HIGH].sends);
        if (!b)
            return STRATA_ERR_AGAIN;
        sge.addr = (uintptr_t)b->data;
        sge.lkey = b->lkey;
        wr.send_flags = 0;
        take_owed(p, &head);
        memcpy(b->data, &head, HEAD);
        rc = post(q, &wr, b, IB_SENT_BUFFER, true);
        if (rc != STRATA_OK)
            ib_buffer_put(&m->q[IB_HIGH].sends, b);
    } else {
        take_owed(p, &head);
        rc = post(q, &wr, NULL, IB_SENT_NOTHING, last);
    }
    if (rc != STRATA_OK)
        give_back_owed(p, &head);
    return rc;
}

void ib_owe(struct ib_qp *q)
{
    struct ib_peer *p = q->peer;
    struct ib_module *m = ib_module(p->ep.btl);

    if (++q->owed < q->window || p->owing)
        return;
    p->owing = true;
    p->next_owing = m->owing;
    m->owing = p;
}

void ib_send_credits(struct ib_module *m)
{
    struct ib_peer *p = m->owing, *next;

    m->owing = NULL;
    for (; p; p = next) {
        next = p->next_owing;
        p->owing = false;
        /* Something else may have told it meanwhile. */
        if (p->q[IB_HIGH].owed < p->q[IB_HIGH].window && p->q[IB_LOW].owed < p->q[IB_LOW].window)
            continue;
        m->count.credits++;
        if (p->left || ib_send_control(p, IB_CONTROL_CREDITS) != STRATA_ERR_AGAIN)
            continue;
        p->owing = true;
        p->next_owing = m->owing;
        m->owing = p;
    }
}
