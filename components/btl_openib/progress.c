/* Completions: what has been sent, what has arrived, what has failed; and sleeping until there are some. */
#include "imm_head.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define DRAIN_AT   1000 /* polls in which a last word of a peer is looked for before it counts as failed */
#define RARE       32u  /* polls between two looks for connection messages, and at low priority while it is quiet */
#define BUSY_RARE  8u   /* at most, after one that brought all it could: what has been passed is not to wait for long */
#define LOOKS_MASK 3u   /* the same, where each look has another reason */
#define ASYNC_MASK 31u  /* of those, between two looks for asynchronous events */

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
        if (!m->closing) /* the layer above has gone */
            op->done(op, rc);
        break;
    case IB_SENT_RDMA:
        ib_rdma_ended(s->what, rc);
        break;
    case IB_SENT_ZCOPY:
        ib_zcopy_ended(m, s->what, rc);
        break;
    }
}

/* All up to the next signalled one. */
static inline void completed(struct ib_module *m, struct ib_qp *q)
{
    struct ib_sent s;

    if (ST_UNLIKELY(q->ended == q->signals))
        return;
    s = q->sent[q->ended++ & q->mask];
    q->done = s.up_to; /* first: done() may send */
    if (s.kind != IB_SENT_NOTHING)
        end_sent(m, q, &s, STRATA_OK);
}

void ib_sent_drop(struct ib_qp *q, int rc)
{
    while (q->ended != q->signals) {
        struct ib_sent s = q->sent[q->ended++ & q->mask];
        q->done = s.up_to;
        end_sent(ib_module(q->peer->ep.btl), q, &s, rc);
    }
    q->done = q->posted;
}

/* ---- arrived ---- */

static void violation(struct ib_module *m, struct ib_peer *p, const char *what)
{
    st_log(m->btl.context, ST_LOG_WARN, "btl_openib", "rank %d sent %s; the message was dropped", p->ep.rank, what);
}

static __attribute__((noinline)) void take_unusual_credits(struct ib_peer *p, const struct ib_head *h)
{
    ib_not_crowded(p);
    if (p->state != IB_UP)
        return;
    p->q[IB_LOW].credits += h->credits[IB_LOW];
    if (p->passing.on) {
        ib_passing_credits(p, h->credits[IB_HIGH]);
    } else {
        p->q[IB_HIGH].credits += h->credits[IB_HIGH];
        p->usual = true;
    }
}

static inline void take_credits(struct ib_peer *p, const struct ib_head *h)
{
    if (ST_UNLIKELY(!p->usual)) {
        take_unusual_credits(p, h);
        return;
    }
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].credits += h->credits[i];
}

static void control(struct ib_module *m, struct ib_peer *p, const struct ib_head *h)
{
    switch (h->control) {
    case IB_CONTROL_CREDITS:
        take_credits(p, h);
        break;
    case IB_CONTROL_BYE:
        ib_teardown_left(p, ib_head_low(h));
        break;
    case IB_CONTROL_CLOSE:
        ib_teardown_asked(p, ib_head_low(h));
        break;
    case IB_CONTROL_CLOSE_TOO:
        ib_teardown_answered(p, ib_head_low(h));
        break;
    default:
        violation(m, p, "an unknown control message");
    }
}

/* Not for the layers above, or nothing that may be. */
static void odd_message(struct ib_module *m, struct ib_peer *p, uint64_t word, uint32_t len)
{
    struct ib_head head, *h = &head;

    memcpy(h, &word, sizeof *h);
    if (len < sizeof *h || h->hdr_len > ST_BTL_HDR_MAX || sizeof *h + h->hdr_len > len)
        violation(m, p, "a message shorter than its header");
    else if (h->am != IB_CONTROL)
        violation(m, p, "a message of an unknown kind");
    else
        control(m, p, h);
}

/* For the layers above, with the head as a word: hdr_len bytes of header, and rest bytes of data for am. */
static inline __attribute__((always_inline)) void deliver(struct ib_module *m, uint32_t priority, struct ib_qp *q,
                                                          uint64_t word, enum st_am am, const void *hdr,
                                                          uint32_t hdr_len, const char *data, uint32_t rest)
{
    struct ib_peer *p = q->peer;
    struct ib_head h;

    q->received++;
    if ((word >> 16 & UINT32_MAX) != 0) { /* both credits as one */
        memcpy(&h, &word, sizeof h);
        take_credits(p, &h);
    }
    if (ST_UNLIKELY(++p->owed[priority] >= q->window))
        ib_owe(p);
    m->frag.hdr = hdr;
    m->frag.hdr_len = hdr_len;
    m->frag.data = data;
    m->frag.len = rest;
    m->frag.rank = p->ep.rank;
    st_btl_deliver(&m->btl, am, &m->frag);
}

static __attribute__((noinline)) void any_message(struct ib_module *m, uint32_t priority, struct ib_qp *q,
                                                  const char *data, uint64_t word, uint32_t len)
{
    uint32_t hdr_len = (uint8_t)(word >> 8) & ~IB_HDR_KEPT;
    uint32_t rest = len - IB_HEAD - hdr_len; /* wraps when the message is too short */
    bool kept = word >> 8 & IB_HDR_KEPT;

    if ((uint8_t)word >= ST_AM_COUNT || hdr_len > ST_BTL_HDR_MAX || rest > len || (kept && !ib_may_be_kept(hdr_len))) {
        q->received++;
        odd_message(m, q->peer, word, len);
        return;
    }
    if (kept)
        ib_keep_hdr(&q->heard, (uint8_t)word, data + IB_HEAD, hdr_len);
    deliver(m, priority, q, word, (enum st_am)(uint8_t)word, data + IB_HEAD, hdr_len, data + IB_HEAD + hdr_len, rest);
}

/* Head and header came as immediate data. */
static void message_by_imm(struct ib_module *m, uint32_t priority, struct ib_qp *q, const struct ib_buffer *b,
                           const struct ibv_wc *wc)
{
    struct ib_head h;
    uint64_t word;

    if (!ib_imm_heard(&q->heard, ntohl(wc->imm_data), &h)) {
        q->received++;
        violation(m, q->peer, "a message whose header is like none that was sent");
        return;
    }
    memcpy(&word, &h, sizeof word);
    deliver(m, priority, q, word, (enum st_am)h.am, q->heard.word, q->heard.len, b->data, wc->byte_len);
}

/* Most messages are the PML's and have a header of one length: of these nothing has to be computed. */
static inline __attribute__((always_inline)) void message(struct ib_module *m, uint32_t priority, struct ib_qp *q,
                                                          const struct ib_buffer *b, uint32_t len)
{
    const char *data = b->data;
    uint64_t word;

    memcpy(&word, data, sizeof word);
    if (ST_LIKELY((uint16_t)word == (ST_AM_PML | IB_USUAL_HDR << 8) && len >= IB_HEAD + IB_USUAL_HDR))
        deliver(m, priority, q, word, ST_AM_PML, data + IB_HEAD, IB_USUAL_HDR, data + IB_HEAD + IB_USUAL_HDR,
                len - IB_HEAD - IB_USUAL_HDR);
    else
        any_message(m, priority, q, data, word, len);
}

/* Consumed buffers are posted again: now, since there are enough of them, or b belongs to a queue of q's own. */
static __attribute__((noinline)) void post_again(struct ib_module *m, uint32_t priority, struct ib_buffer *b)
{
    struct ib_queue *queue = &m->q[priority];

    if (queue->srq) {
        ib_srq_fill(m, priority);
        return;
    }
    queue->again = NULL;
    queue->n_again = 0;
    ib_rq_recycle(queue, &b->peer->q[priority], b);
}

static inline __attribute__((always_inline)) void recycle(struct ib_module *m, uint32_t priority, struct ib_buffer *b)
{
    struct ib_queue *queue = &m->q[priority];

    b->wr.next = queue->again;
    queue->again = &b->wr;
    if (ST_UNLIKELY(++queue->n_again >= queue->batch))
        post_again(m, priority, b);
}

/* Of another queue pair than the one before, of none that there is, without a head, or an error. */
static __attribute__((noinline)) void received_odd(struct ib_module *m, uint32_t priority, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_qp *q = ib_qp_map_find(&m->map, wc->qp_num);

    if (q && wc->status == IBV_WC_SUCCESS) {
        if (q->peer->state != IB_UP) /* a connection's first message; it is not yet the last queue pair */
            ib_wire_up_heard(q->peer);
        m->last = q;
        m->last_number = wc->qp_num;
        if (wc->wc_flags & IBV_WC_WITH_IMM)
            message_by_imm(m, priority, q, b, wc);
        else
            message(m, priority, q, b, wc->byte_len);
    } else if (!m->q[priority].srq) {
        ib_rq_lost(&m->q[priority], q, b);
        return;
    }
    recycle(m, priority, b);
}

static inline __attribute__((always_inline)) void received(struct ib_module *m, uint32_t priority,
                                                           const struct ibv_wc *wc)
{
    if (ST_UNLIKELY(m->last_number != wc->qp_num || wc->status != IBV_WC_SUCCESS || wc->wc_flags & IBV_WC_WITH_IMM)) {
        received_odd(m, priority, wc);
        return;
    }
    message(m, priority, m->last, (struct ib_buffer *)(uintptr_t)wc->wr_id, wc->byte_len);
    recycle(m, priority, (struct ib_buffer *)(uintptr_t)wc->wr_id);
}

static void failed(struct ib_qp *q, const struct ibv_wc *wc)
{
    struct ib_module *m = ib_module(q->peer->ep.btl);

    /* What follows the first error is its consequence. */
    if (wc->status == IBV_WC_WR_FLUSH_ERR && q->peer->state != IB_UP)
        return;
    if (ib_teardown_forgives(q->peer))
        return;
    if (!q->peer->error && q->peer->state == IB_UP && !q->peer->left && !m->closing)
        st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: sending to rank %d: %s (vendor code 0x%x)", m->name,
               q->peer->ep.rank, ibv_wc_status_str(wc->status), wc->vendor_err);
    ib_peer_broken(q->peer, ibv_wc_status_str(wc->status));
}

static __attribute__((noinline)) void end_of_send(struct ib_module *m, const struct ibv_wc *wc)
{
    struct ib_qp *q = ib_sender(wc->wr_id);

    if (ST_UNLIKELY(q->number != wc->qp_num)) /* stashed, and of a queue pair that has gone since */
        return;
    if (ST_UNLIKELY(wc->status != IBV_WC_SUCCESS)) {
        failed(q, wc);
        return;
    }
    completed(m, q);
    if (q->priority == IB_LOW && q->peer->passing.on)
        ib_passing_ended(q->peer);
}

static inline __attribute__((always_inline)) void handle(struct ib_module *m, uint32_t priority,
                                                         const struct ibv_wc *wc)
{
    if (ST_LIKELY(!ib_is_send(wc->wr_id)))
        received(m, priority, wc);
    else
        end_of_send(m, wc);
}

/* As many as one look can bring: there may be more. */
static __attribute__((noinline)) void brought_all(struct ib_module *m, uint32_t priority)
{
    m->q[priority].full++;
    ib_srq_behind(m, priority);
    if (m->until > BUSY_RARE)
        m->until = BUSY_RARE;
}

static inline __attribute__((always_inline)) int poll_queue(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *queue = &m->q[priority];
    struct ibv_wc wc[IB_BATCH];
    int n = ibv_poll_cq(queue->cq, IB_BATCH, wc);

    if (n <= 0)
        return 0;
    /* No counter beside it: registers are dear here. */
    for (const struct ibv_wc *at = wc, *end = wc + n;;) {
        handle(m, priority, at);
        if (++at == end)
            break;
    }
    if (ST_UNLIKELY(n == IB_BATCH))
        brought_all(m, priority);
    else
        queue->behind = 0;
    return n;
}

static __attribute__((noinline)) int poll_high(struct ib_module *m)
{
    return poll_queue(m, IB_HIGH);
}

static __attribute__((noinline)) int poll_low(struct ib_module *m)
{
    int n = poll_queue(m, IB_LOW);

    if (n > 0)
        m->low_soon = IB_LOW_SOON;
    else if (m->low_soon)
        m->low_soon--;
    return n;
}

static __attribute__((noinline)) int unstash(struct ib_module *m)
{
    int n = 0;

    /* Until the end it stays marked: what is handled here may send, and that may want to stash more. */
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        while (m->stash[i].at < m->stash[i].n) {
            struct ibv_wc wc = m->stash[i].wc[m->stash[i].at++];
            handle(m, i, &wc);
            n++;
        }
        m->stash[i].at = m->stash[i].n = 0;
    }
    m->stashed = false;
    m->hot = m->n_up > 0;
    return n;
}

/* A message that only brings credits. */
static bool took_credits(struct ib_module *m, const struct ibv_wc *wc)
{
    struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)wc->wr_id;
    struct ib_qp *q = wc->status == IBV_WC_SUCCESS ? ib_qp_map_find(&m->map, wc->qp_num) : NULL;
    struct ib_head h;

    if (!q || q->peer->state != IB_UP || wc->byte_len != sizeof h || wc->wc_flags & IBV_WC_WITH_IMM)
        return false;
    memcpy(&h, b->data, sizeof h);
    if (h.am != IB_CONTROL || h.control != IB_CONTROL_CREDITS || h.hdr_len != 0)
        return false;
    q->received++;
    take_credits(q->peer, &h);
    recycle(m, IB_HIGH, b);
    return true;
}

/* Whether the next one of high priority to end is somebody's: nobody is told but from progress. */
static bool calls_back(const struct ib_qp *q)
{
    return q->ended != q->signals && q->sent[q->ended & q->mask].kind == IB_SENT_ZCOPY;
}

void ib_reclaim(struct ib_module *m)
{
    struct ibv_wc wc[IB_BATCH];
    bool later = false; /* after one that has to wait for progress all do: they end in order */
    int n;

    if (!m->hot)
        return;
    n = ibv_poll_cq(m->q[IB_HIGH].cq, IB_BATCH, wc);
    for (int i = 0; i < n; i++) {
        struct ib_qp *q = ib_sender(wc[i].wr_id);
        bool sent = ib_is_send(wc[i].wr_id);
        if (sent && q->number != wc[i].qp_num) /* of a queue pair that has gone since */
            continue;
        later = later || (sent && calls_back(q));
        if (sent && wc[i].status == IBV_WC_SUCCESS && !later)
            completed(m, q);
        else if (sent || !took_credits(m, &wc[i]))
            m->stash[IB_HIGH].wc[m->stash[IB_HIGH].n++] = wc[i];
    }
    if (m->stash[IB_HIGH].n) {
        m->stashed = m->attend = true;
        m->hot = false;
    }
}

/* The last word of a peer came before the error that its going away caused, but by the other queue. */
static __attribute__((noinline)) void some_broken(struct ib_module *m)
{
    for (int i = 0; i < DRAIN_AT && (m->stashed ? unstash(m) : poll_high(m)) > 0; i++)
        ;
    ib_report_broken(m);
}

/* Whatever is not the completions of high priority. What is set in `attend` when it comes up is seen at once; what is
 * not is seen after a few polls. */
static __attribute__((noinline)) int the_rest(struct ib_module *m, int n)
{
    bool rare = !m->attend || (++m->looks & LOOKS_MASK) == 0;

    if (m->stashed) {
        n += unstash(m);
        n += m->n_up ? poll_high(m) : 0;
    }
    if (m->n_up && (m->low_soon || m->n_closing || rare))
        n += poll_low(m);
    for (uint32_t i = 0; rare && i < IB_PRIORITIES; i++)
        if (m->q[i].n_again)
            ib_srq_fill(m, i);
    if (m->owing)
        ib_send_credits(m);
    if (!st_list_empty(&m->rdma_waiting))
        ib_rdma_progress(m);
    if (m->broken)
        some_broken(m);
    if (m->n_closing) {
        if (m->stashed) /* by sends since */
            n += unstash(m);
        ib_teardown_progress(m);
    }
    if (rare && m->crowded_ns)
        ib_crowds_end(m);
    if (rare)
        ib_registrations_apply(m);
    if (rare || !st_list_empty(&m->wiring)) {
        n += ib_methods_poll(m);
        if (!st_list_empty(&m->wiring))
            ib_wire_up_timers(m);
    }
    if (rare && (++m->rare & ASYNC_MASK) == 0) {
        ib_async_poll(m);
        ib_srq_limits_look(m);
        ib_keepalive(m);
    }
    m->attend = m->stashed || m->low_soon || m->owing || m->broken || m->n_closing ||
                !st_list_empty(&m->rdma_waiting) || !st_list_empty(&m->wiring);
    m->until = m->attend ? 1 : RARE;
    return n;
}

int ib_progress(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);
    int n = 0;

    if (ST_LIKELY(m->hot))
        n = poll_queue(m, IB_HIGH);
    if (ST_UNLIKELY(--m->until == 0))
        n = the_rest(m, n);
    return n;
}

/* ---- sleeping ---- */

int ib_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct ib_module *m = ib_module(btl);
    struct ibv_cq *cq;
    void *context;
    bool armed = true;

    /* The timers of connections in the making are longer than a sleep. */
    if (m->stashed || m->owing || m->broken || ib_teardown_polls(m))
        return STRATA_ERR_AGAIN;
    ib_async_poll(m);
    ib_srq_limits_look(m);
    ib_keepalive(m);
    while (ibv_get_cq_event(m->channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        if (m->q[i].n_again)
            ib_srq_fill(m, i);
        armed = ibv_req_notify_cq(m->q[i].cq, 0) == 0;
        if (!armed) /* what has been found holds all the same */
            break;
        /* What came before the request makes no event. */
        m->stash[i].n = ibv_poll_cq(m->q[i].cq, IB_BATCH, m->stash[i].wc);
        if (m->stash[i].n < 0)
            m->stash[i].n = 0;
        m->stash[i].at = 0;
        m->stashed |= m->stash[i].n > 0;
    }
    if (m->stashed) {
        ib_attend(m);
        m->hot = false;
    }
    if (!armed || m->stashed || ib_methods_arm(m) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    w->fd = m->wait_fd >= 0 ? m->wait_fd : m->channel->fd;
    return STRATA_OK;
}

void ib_disarm(struct st_btl *btl)
{
    (void)btl; /* events that are left are taken by the next arm */
}
