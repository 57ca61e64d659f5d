/* The end of work requests that were posted to send, and looking for it when a send has no room. */
#include <string.h>
#include "data/send_inl.h"

void ib_sent_end(struct ib_qp *q, struct ib_sent *s, int rc)
{
    struct ib_module *m = ib_module_of(q->peer);
    struct st_btl_op *op = s->what;

    switch ((enum ib_sent_kind)s->kind) {
    case IB_SENT_NOTHING:
        return;
    case IB_SENT_BUFFER:
        ib_buffer_put(&m->q[q->priority].sends, s->what);
        return;
    case IB_SENT_OP:
        break;
    case IB_SENT_RDMA:
        op = ib_rdma_free(m, s->what);
        break;
    case IB_SENT_ZCOPY:
        op = ib_zcopy_free(m, s->what);
        break;
    }
    if (!m->closing) /* the layer above has gone */
        op->done(op, rc);
}

void ib_sent_drop(struct ib_qp *q, int rc)
{
    while (q->ended != q->signals) {
        struct ib_sent s = q->sent[q->ended++ & q->mask];
        q->done = s.up_to;
        ib_sent_end(q, &s, rc);
    }
    q->done = q->posted;
}

/* ---- for a send that has no room: of sends, and of credit messages; the rest waits for progress ---- */

/* Whether a ring message older than one in the CQ may be unhandled. The CQ reports ring writes with immediate data, and
 * the caller may be handling the first of several. */
static bool reclaim_is_early(const struct ib_module *m, const struct ib_ring_in *r)
{
    return m->poll.stash[IB_HIGH].n || r->detect == IB_DETECT_IMM || ib_ring_has_some(r);
}

/* A message that only brings credits. Messages count in the order in which they were sent: where one of a ring may be
 * older and has not been handled, this one waits as well, without its credits. */
static bool reclaim_credits(struct ib_module *m, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_qp *q = wc->status == IBV_WC_SUCCESS ? ib_qp_map_find(&m->qps.map, wc->qp_num) : NULL;
    struct ib_head h;

    if (!q || q->peer->state != IB_UP || wc->byte_len != sizeof h || wc->wc_flags & IBV_WC_WITH_IMM)
        return false;
    memcpy(&h, b->data, sizeof h);
    if (h.am != IB_CONTROL || h.control != IB_CONTROL_CREDITS || h.hdr_len != 0)
        return false;
    ib_take_credits(q->peer, &h);
    if (q->ring && reclaim_is_early(m, q->ring)) {
        h = (struct ib_head){.am = IB_CONTROL, .control = IB_CONTROL_CREDITS};
        memcpy(b->data, &h, sizeof h);
        return false;
    }
    q->received++;
    ib_recycle(&m->q[IB_HIGH], b);
    return true;
}

/* Whether the next end of high priority is reported to the layer above, which only progress may do. */
static bool reclaim_calls_back(const struct ib_qp *q)
{
    const struct ib_sent *s = &q->sent[q->ended & q->mask];

    return q->ended != q->signals && (s->kind == IB_SENT_ZCOPY || s->kind == IB_SENT_OP);
}

void ib_reclaim(struct ib_module *m)
{
    struct ibv_wc wc[IB_POLLED];
    bool later = false; /* after one that has to wait for progress all do: they end in order */
    int n;

    if (!m->poll.hot)
        return;
    n = ibv_poll_cq(m->q[IB_HIGH].cq, IB_POLLED, wc);
    for (int i = 0; i < n; i++) {
        struct ib_qp *q = ib_sender(wc[i].wr_id);
        bool sent = ib_is_send(wc[i].wr_id);
        if (sent && q->number != wc[i].qp_num) /* of a queue pair that has gone since */
            continue;
        later = later || (sent && reclaim_calls_back(q));
        if (sent && wc[i].status == IBV_WC_SUCCESS && !later)
            ib_sent_next(q);
        else if (sent || !reclaim_credits(m, &wc[i]))
            m->poll.stash[IB_HIGH].wc[m->poll.stash[IB_HIGH].n++] = wc[i];
    }
    if (m->poll.stash[IB_HIGH].n) {
        m->poll.stashed = m->poll.attend = true;
        m->poll.hot = false;
    }
}

bool ib_reclaim_room(const struct ib_peer *p, const struct ib_qp *q)
{
    if (p->state != IB_UP)
        return false;
    ib_reclaim(ib_module_of(p));
    return send_has_room_now(q);
}
