/* Completions: what has been sent, what has arrived, what has failed; and sleeping until there are some. */
#include "openib.h"

#include <stdio.h>
#include <string.h>

#define BATCH        16
#define DRAIN_AT     1000 /* polls in which a last word of a peer is looked for before it counts as failed */
#define CONNECT_MASK 15u  /* polls between two looks for connection messages */
#define ASYNC_MASK   1023u

/* ---- sent ---- */

static void end_sent(struct ib_module *m, struct ib_qp *q, struct ib_sent *s, int rc)
{
    struct st_btl_op *op = s->what;

    switch ((enum ib_sent_kind)s->kind) {
    case IB_SENT_NOTHING:
        break;
    case IB_SENT_BUFFER:
        ib_buffer_put(&m->q[q->priority].sends, s->what);
        break;
    case IB_SENT_OP:
        op->done(op, rc);
        break;
    case IB_SENT_RDMA:
        ib_rdma_ended(s->what, rc);
        break;
    }
}

/* All up to the next signalled one, in the order in which they were posted. */
static inline void completed(struct ib_module *m, struct ib_qp *q)
{
    while (q->done != q->posted) {
        struct ib_sent s = q->sent[q->done & (q->depth - 1)];
        q->done++; /* first: done() may send */
        if (s.kind != IB_SENT_NOTHING)
            end_sent(m, q, &s, STRATA_OK);
        if (s.signalled)
            return;
    }
}

void ib_sent_drop(struct ib_qp *q, int rc)
{
    while (q->sent && q->done != q->posted) {
        struct ib_sent s = q->sent[q->done & (q->depth - 1)];
        q->done++;
        end_sent(ib_module(q->peer->ep.btl), q, &s, rc);
    }
}

/* ---- arrived ---- */

static void violation(struct ib_module *m, struct ib_peer *p, const char *what)
{
    st_log(m->btl.context, ST_LOG_WARN, "btl_openib", "rank %d sent %s; the message was dropped", p->ep.rank, what);
}

static inline void take_credits(struct ib_peer *p, const struct ib_head *h)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        if (h->credits[i] && p->state == IB_UP)
            p->q[i].credits += h->credits[i];
}

static void control(struct ib_module *m, struct ib_peer *p, const struct ib_head *h)
{
    switch (h->control) {
    case IB_CONTROL_CREDITS:
        break;
    case IB_CONTROL_BYE:
        p->left = true;
        break;
    case IB_CONTROL_CLOSE:
        ib_teardown_asked(p);
        break;
    case IB_CONTROL_CLOSE_TOO:
        ib_teardown_answered(p);
        break;
    default:
        violation(m, p, "an unknown control message");
    }
}

static inline void message(struct ib_module *m, struct ib_qp *q, struct ib_buffer *b, uint32_t len)
{
    struct ib_peer *p = q->peer;
    struct ib_head h;
    struct st_frag f = {.rank = p->ep.rank, .btl = &m->btl};

    q->received++;
    if (IB_UNLIKELY(p->state != IB_UP))
        ib_wire_up_heard(p);
    memcpy(&h, b->data, sizeof h);
    if (IB_UNLIKELY(len < sizeof h || h.hdr_len > ST_BTL_HDR_MAX || sizeof h + h.hdr_len > len)) {
        violation(m, p, "a message shorter than its header");
        return;
    }
    take_credits(p, &h);
    if (IB_UNLIKELY(h.am >= ST_AM_COUNT)) {
        if (h.am == IB_CONTROL)
            control(m, p, &h);
        else
            violation(m, p, "a message of an unknown kind");
        return;
    }
    f.hdr = b->data + sizeof h;
    f.hdr_len = h.hdr_len;
    f.data = b->data + sizeof h + h.hdr_len;
    f.len = len - (uint32_t)sizeof h - h.hdr_len;
    ib_owe(q);
    st_btl_deliver(&m->btl, (enum st_am)h.am, &f);
}

/* Gives a consumed buffer back to the queue that it came from; `again`: where it is posted anew. */
static inline void recycle(struct ib_module *m, uint32_t priority, struct ib_qp *q, struct ib_buffer *b, bool again)
{
    struct ib_queue *queue = &m->q[priority];

    if (queue->srq) {
        queue->posted--;
        b->next = queue->again;
        queue->again = b;
        queue->n_again++;
        return;
    }
    if (q)
        q->receives--;
    b->peer = NULL;
    if (again)
        ib_rq_repost(q, b);
    else
        ib_buffer_put(&queue->receives, b);
}

static inline void received(struct ib_module *m, uint32_t priority, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_qp *q = m->last;

    if (IB_UNLIKELY(!q || q->qp->qp_num != wc->qp_num))
        q = m->last = ib_qp_map_find(&m->map, wc->qp_num);
    if (IB_LIKELY(q && wc->status == IBV_WC_SUCCESS)) {
        message(m, q, b, wc->byte_len);
        recycle(m, priority, q, b, true);
    } else {
        recycle(m, priority, q, b, false);
    }
}

static void failed(struct ib_qp *q, const struct ibv_wc *wc)
{
    struct ib_module *m = ib_module(q->peer->ep.btl);

    /* What follows the first error is its consequence. */
    if (wc->status == IBV_WC_WR_FLUSH_ERR && q->peer->state != IB_UP)
        return;
    if (q->peer->state == IB_CONSENTED) { /* it has gone before its device could say that our consent has come */
        ib_sent_drop(q, STRATA_ERR_PEER);
        return;
    }
    if (!q->peer->error && q->peer->state == IB_UP && !q->peer->left && !m->closing)
        st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: sending to rank %d: %s (vendor code 0x%x)", m->name,
               q->peer->ep.rank, ibv_wc_status_str(wc->status), wc->vendor_err);
    ib_peer_broken(q->peer, ibv_wc_status_str(wc->status));
}

static inline void handle(struct ib_module *m, uint32_t priority, const struct ibv_wc *wc)
{
    struct ib_qp *q = (struct ib_qp *)(uintptr_t)(wc->wr_id & ~(uint64_t)1);

    if (!(wc->wr_id & 1))
        received(m, priority, wc);
    else if (IB_LIKELY(wc->status == IBV_WC_SUCCESS))
        completed(m, q);
    else
        failed(q, wc);
}

static inline int poll_queue(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *queue = &m->q[priority];
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(queue->cq, BATCH, wc);

    if (n <= 0)
        return 0;
    for (int i = 0; i < n; i++)
        handle(m, priority, &wc[i]);
    if (queue->srq) {
        if (IB_UNLIKELY(queue->posted < m->spec[priority].low && queue->target > m->spec[priority].low))
            queue->grow = true;
        ib_srq_fill(m, priority);
    }
    return n;
}

static int unstash(struct ib_module *m)
{
    int n = 0;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        while (m->stash[i].at < m->stash[i].n) {
            struct ibv_wc wc = m->stash[i].wc[m->stash[i].at++];
            handle(m, i, &wc);
            n++;
        }
        m->stash[i].at = m->stash[i].n = 0;
        ib_srq_fill(m, i);
    }
    m->stashed = false;
    return n;
}

/* The last word of a peer came before the error that its going away caused, but by the other queue. */
static __attribute__((noinline)) void some_broken(struct ib_module *m)
{
    for (int i = 0; i < DRAIN_AT && poll_queue(m, IB_HIGH) > 0; i++)
        ;
    ib_report_broken(m);
}

int ib_progress(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);
    int n = 0;

    if (IB_UNLIKELY(m->stashed))
        n += unstash(m);
    if (m->n_up) {
        n += poll_queue(m, IB_HIGH);
        n += poll_queue(m, IB_LOW);
    }
    if (IB_UNLIKELY(m->owing != NULL))
        ib_send_credits(m);
    if (IB_UNLIKELY(!st_list_empty(&m->rdma_waiting)))
        ib_rdma_progress(m);
    if (IB_UNLIKELY(m->broken))
        some_broken(m);
    if (IB_UNLIKELY(m->n_closing))
        ib_teardown_progress(m, n == 0);
    m->polls++;
    if (IB_UNLIKELY((m->polls & CONNECT_MASK) == 0 || !st_list_empty(&m->wiring))) {
        n += ib_datagrams_poll(m);
        if (!st_list_empty(&m->wiring))
            ib_wire_up_timers(m);
    }
    if (IB_UNLIKELY((m->polls & ASYNC_MASK) == 0))
        ib_async_poll(m);
    return n;
}

/* ---- sleeping ---- */

int ib_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct ib_module *m = ib_module(btl);
    struct ibv_cq *cq;
    void *context;

    /* Timers run while connections are made. */
    if (!st_list_empty(&m->wiring) || m->stashed || m->owing || m->broken || m->n_closing)
        return STRATA_ERR_AGAIN;
    ib_async_poll(m);
    while (ibv_get_cq_event(m->channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    if (ib_datagrams_arm(m) != 0)
        return STRATA_ERR_AGAIN;
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        if (ibv_req_notify_cq(m->q[i].cq, 0) != 0)
            return STRATA_ERR_AGAIN;
        /* What came before the request makes no event. */
        m->stash[i].n = ibv_poll_cq(m->q[i].cq, BATCH, m->stash[i].wc);
        if (m->stash[i].n < 0)
            m->stash[i].n = 0;
        m->stash[i].at = 0;
        m->stashed |= m->stash[i].n > 0;
    }
    if (m->stashed || ib_datagrams_poll(m) > 0)
        return STRATA_ERR_AGAIN;
    w->fd = m->channel->fd;
    return STRATA_OK;
}

void ib_disarm(struct st_btl *btl)
{
    (void)btl; /* events that are left are taken by the next arm */
}
