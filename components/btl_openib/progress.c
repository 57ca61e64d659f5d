/* Messages and their completions: the hot path of receiving. */
#include <arpa/inet.h>
#include <string.h>
#include "data/completion.h"
#include "data/imm_head.h"

#define BUSY_RARE 8u /* polls until all else is looked at, after a full one: consumed buffers are not to wait long */

static void message_is_bad(struct ib_module *m, struct ib_peer *p, const char *what)
{
    st_log(m->btl.context, ST_LOG_WARN, "btl_openib", "rank %d sent %s; the message was dropped", p->ep.rank, what);
}

static void message_control(struct ib_module *m, struct ib_peer *p, const struct ib_head *h, const void *body)
{
    switch (h->control) {
    case IB_CONTROL_CREDITS:
        ib_take_credits(p, h);
        break;
    case IB_CONTROL_BYE:
        ib_close_left(p, ib_head_low(h));
        break;
    case IB_CONTROL_CLOSE:
        ib_close_asked(p, ib_head_low(h));
        break;
    case IB_CONTROL_CLOSE_TOO:
        ib_close_answered(p, ib_head_low(h));
        break;
    case IB_CONTROL_RING:
    case IB_CONTROL_FAREWELL:
        ib_take_credits(p, h);
        if (!ib_eager_control(m, p, h->control == IB_CONTROL_FAREWELL, body, h->hdr_len))
            message_is_bad(m, p, "a control message about eager RDMA that makes no sense");
        break;
    default:
        message_is_bad(m, p, "an unknown control message");
    }
}

/* Control messages, which come by high priority only, and messages that make no sense. */
static void message_odd(struct ib_module *m, const struct ib_qp *q, uint64_t word, const char *data, uint32_t len)
{
    struct ib_peer *p = q->peer;
    struct ib_head head, *h = &head;

    memcpy(h, &word, sizeof *h);
    if (len < sizeof *h || h->hdr_len > ST_BTL_HDR_MAX || sizeof *h + h->hdr_len > len)
        message_is_bad(m, p, "a message shorter than its header");
    else if (h->am != IB_CONTROL || q->priority != IB_HIGH)
        message_is_bad(m, p, "a message of an unknown kind");
    else
        message_control(m, p, h, data + IB_HEAD);
}

/* A message for the layers above, with the head as a word: hdr_len bytes of header, and rest bytes of data for am. */
static inline __attribute__((always_inline)) void message_deliver(struct ib_module *m, uint32_t priority,
                                                                  struct ib_qp *q, uint64_t word, enum st_am am,
                                                                  const void *hdr, uint32_t hdr_len, const char *data,
                                                                  uint32_t rest)
{
    struct ib_peer *p = q->peer;
    struct ib_head h;

    q->received++;
    if (word >> 16 != 0) { /* credits and slots as one */
        memcpy(&h, &word, sizeof h);
        ib_take_credits(p, &h);
    }
    if (ST_UNLIKELY(++p->owed[priority] >= q->window))
        ib_owe(p);
    m->poll.frag.hdr = hdr;
    m->poll.frag.hdr_len = hdr_len;
    m->poll.frag.data = data;
    m->poll.frag.len = rest;
    m->poll.frag.rank = p->ep.rank;
    st_btl_deliver(&m->btl, am, &m->poll.frag);
}

static __attribute__((noinline)) void message_any(struct ib_module *m, uint32_t priority, struct ib_qp *q,
                                                  const char *data, uint64_t word, uint32_t len)
{
    uint32_t hdr_len = (uint8_t)(word >> 8) & ~IB_HDR_KEPT;
    uint32_t rest = len - IB_HEAD - hdr_len; /* wraps when the message is too short */
    bool kept = word >> 8 & IB_HDR_KEPT;

    if ((uint8_t)word >= ST_AM_COUNT || hdr_len > ST_BTL_HDR_MAX || rest > len || (kept && !ib_may_be_kept(hdr_len))) {
        q->received++;
        message_odd(m, q, word, data, len);
        return;
    }
    if (kept)
        ib_keep_hdr(&q->heard, (uint8_t)word, data + IB_HEAD, hdr_len);
    message_deliver(m, priority, q, word, (enum st_am)(uint8_t)word, data + IB_HEAD, hdr_len, data + IB_HEAD + hdr_len,
                    rest);
}

/* Head and header came as immediate data. */
static void message_by_imm(struct ib_module *m, uint32_t priority, struct ib_qp *q, const struct ib_buffer *b,
                           const struct ibv_wc *wc)
{
    struct ib_head h;
    uint64_t word;

    if (!ib_imm_heard(&q->heard, ntohl(wc->imm_data), &h)) {
        q->received++;
        message_is_bad(m, q->peer, "a message whose header is like none that was sent");
        return;
    }
    memcpy(&word, &h, sizeof word);
    message_deliver(m, priority, q, word, (enum st_am)h.am, q->heard.word, q->heard.len, b->data, wc->byte_len);
}

/* The immediate data of a put with notice. They bring no credits, and the receive buffer is as it was. */
static void message_notice(struct ib_module *m, uint32_t priority, struct ib_qp *q, const struct ibv_wc *wc)
{
    uint32_t word = ntohl(wc->imm_data);

    if (word == IB_IMM_RING)
        ib_ring_completion(m, q->peer);
    else
        message_deliver(m, priority, q, 0, ST_AM_NOTICE, &word, sizeof word, NULL, 0);
}

/* Most messages are one client's and have a header of one length: of these nothing has to be computed. */
static inline __attribute__((always_inline)) void message_usual(struct ib_module *m, uint32_t priority, struct ib_qp *q,
                                                                const struct ib_buffer *b, uint32_t len)
{
    const char *data = b->data;
    uint64_t word;

    memcpy(&word, data, sizeof word);
    if (ST_LIKELY((uint16_t)word == (ST_AM_FREQUENT | IB_USUAL_HDR << 8) && len >= IB_HEAD + IB_USUAL_HDR))
        message_deliver(m, priority, q, word, ST_AM_FREQUENT, data + IB_HEAD, IB_USUAL_HDR,
                        data + IB_HEAD + IB_USUAL_HDR, len - IB_HEAD - IB_USUAL_HDR);
    else
        message_any(m, priority, q, data, word, len);
}

/* With eager RDMA: the peer's messages are counted, but not its credit messages, and what it sent before by a ring is
 * there, and handled before. */
static inline void completion_eager(struct ib_module *m, uint32_t priority, struct ib_qp *q, const struct ibv_wc *wc)
{
    const struct ib_buffer *b = (const struct ib_buffer *)(uintptr_t)wc->wr_id;

    if (priority != IB_HIGH)
        return;
    if (!q->ring) {
        if (wc->wc_flags & IBV_WC_WITH_IMM || *(const uint8_t *)b->data != IB_CONTROL)
            ib_eager_count(m, q->peer);
        return;
    }
    q->ring->arrivals++;             /* what goes around its ring keeps it hot */
    if (ST_UNLIKELY(q->ring->quiet)) /* only rings of every round report arrivals */
        ib_ring_is_lively(&m->eager, q->ring);
    ib_ring_before(m, q->ring);
}

/* A completion of another queue pair than the last one, of none that exists, without a head, or an error; with eager
 * RDMA all of them come here, so that the others need not ask for it. */
static __attribute__((noinline)) void completion_odd(struct ib_module *m, uint32_t priority, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_qp *q =
        m->poll.last && m->poll.last->number == wc->qp_num ? m->poll.last : ib_qp_map_find(&m->qps.map, wc->qp_num);

    if (q && wc->status == IBV_WC_SUCCESS) {
        if (q->peer->state != IB_UP) /* a connection's first message; it is not yet the last queue pair */
            ib_conn_heard(q->peer);
        m->poll.last = q;
        if (m->eager.on)
            completion_eager(m, priority, q, wc);
        else
            m->poll.last_number = wc->qp_num;
        if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
            message_notice(m, priority, q, wc);
        else if (wc->wc_flags & IBV_WC_WITH_IMM)
            message_by_imm(m, priority, q, b, wc);
        else
            message_usual(m, priority, q, b, wc->byte_len);
    } else if (!m->q[priority].srq) {
        ib_rq_lost(&m->q[priority], q, b);
        return;
    }
    ib_recycle(&m->q[priority], b);
}

static inline __attribute__((always_inline)) void completion_receive(struct ib_module *m, uint32_t priority,
                                                                     const struct ibv_wc *wc)
{
    if (ST_UNLIKELY(m->poll.last_number != wc->qp_num || wc->status != IBV_WC_SUCCESS ||
                    wc->wc_flags & IBV_WC_WITH_IMM)) {
        completion_odd(m, priority, wc);
        return;
    }
    message_usual(m, priority, m->poll.last, (struct ib_buffer *)(uintptr_t)wc->wr_id, wc->byte_len);
    ib_recycle(&m->q[priority], (struct ib_buffer *)(uintptr_t)wc->wr_id);
}

static void completion_failed(struct ib_qp *q, const struct ibv_wc *wc)
{
    struct ib_module *m = ib_module_of(q->peer);

    /* Errors behind the first one are its consequence. */
    if (wc->status == IBV_WC_WR_FLUSH_ERR && q->peer->state != IB_UP)
        return;
    if (ib_close_forgives(q->peer))
        return;
    if (!q->peer->error && q->peer->state == IB_UP && !q->peer->left && !m->closing)
        st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: sending to rank %d: %s (vendor code 0x%x)", m->dev.name,
               q->peer->ep.rank, ibv_wc_status_str(wc->status), wc->vendor_err);
    ib_peer_broken(q->peer, ibv_wc_status_str(wc->status));
}

static __attribute__((noinline)) void completion_send(const struct ibv_wc *wc)
{
    struct ib_qp *q = ib_sender(wc->wr_id);

    if (ST_UNLIKELY(q->number != wc->qp_num)) /* stashed, and of a queue pair that has gone since */
        return;
    if (ST_UNLIKELY(wc->status != IBV_WC_SUCCESS)) {
        completion_failed(q, wc);
        return;
    }
    ib_sent_next(q);
    if (q->priority == IB_LOW && q->peer->reorder.on)
        ib_reorder_ended(q->peer);
}

static inline __attribute__((always_inline)) void completion_handle(struct ib_module *m, uint32_t priority,
                                                                    const struct ibv_wc *wc)
{
    if (ST_LIKELY(!ib_is_send(wc->wr_id)))
        completion_receive(m, priority, wc);
    else
        completion_send(wc);
}

/* A full poll: there may be more. */
static __attribute__((noinline)) void poll_was_full(struct ib_module *m, uint32_t priority)
{
    m->q[priority].full++;
    if (ib_srq_behind(&m->q[priority])) /* the event that few buffers are left would be seen late otherwise */
        ib_async_poll(m);
    if (m->poll.until > BUSY_RARE)
        m->poll.until = BUSY_RARE;
}

static inline __attribute__((always_inline)) int poll_queue(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *queue = &m->q[priority];
    struct ibv_wc wc[IB_POLLED];
    int n = ibv_poll_cq(queue->cq, IB_POLLED, wc);

    if (n <= 0)
        return 0;
    /* No counter beside it: registers are dear here. */
    for (const struct ibv_wc *at = wc, *end = wc + n;;) {
        completion_handle(m, priority, at);
        if (++at == end)
            break;
    }
    if (ST_UNLIKELY(n == IB_POLLED))
        poll_was_full(m, priority);
    else
        queue->behind = 0;
    return n;
}

__attribute__((noinline)) int ib_poll_high(struct ib_module *m)
{
    return poll_queue(m, IB_HIGH);
}

__attribute__((noinline)) int ib_poll_low(struct ib_module *m)
{
    int n = poll_queue(m, IB_LOW);

    if (n > 0)
        m->poll.low_soon = IB_LOW_SOON;
    else if (m->poll.low_soon)
        m->poll.low_soon--;
    return n;
}

int ib_unstash(struct ib_module *m)
{
    int n = 0;

    /* Marked as stashed to the end: handling these may send, and sending may stash more. */
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        while (m->poll.stash[i].at < m->poll.stash[i].n) {
            struct ibv_wc wc = m->poll.stash[i].wc[m->poll.stash[i].at++];
            completion_handle(m, i, &wc);
            n++;
        }
        m->poll.stash[i].at = m->poll.stash[i].n = 0;
    }
    m->poll.stashed = false;
    m->poll.hot = m->qps.n_peers > 0;
    return n;
}

int ib_progress(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);
    int n = 0;

    if (ST_LIKELY(m->poll.hot))
        n = poll_queue(m, IB_HIGH);
    if (ST_UNLIKELY(--m->poll.until == 0))
        n = ib_progress_rest(m, n);
    return n;
}
