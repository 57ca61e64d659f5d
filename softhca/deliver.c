/* What deliveries share: finding the queue pair, taking a receive, completing it. */
#include "deliver.h"

bool hca_take_hold(uint32_t qpn, uint32_t type, struct hca_target *t)
{
    uint32_t state;

    t->qpn = qpn;
    t->peer = hca_peer_get(hca_qpn_process(qpn));
    if (!t->peer)
        return false;
    t->qp = hca_qp_at(t->peer->segment, hca_qpn_slot(qpn));
    atomic_fetch_add(&t->qp->users, 1);
    state = atomic_load(&t->qp->state);
    if (atomic_load(&t->qp->generation) != 0 && t->qp->type == type &&
        (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE))
        return true;
    hca_let_go(t);
    return false;
}

void hca_let_go(struct hca_target *t)
{
    atomic_fetch_sub(&t->qp->users, 1);
}

bool hca_lost(const struct hca_qp_own *qp)
{
    uint32_t every = atomic_load_explicit(&hca_trouble.drop, memory_order_relaxed);

    if (!every || qp->tries || (atomic_fetch_add(&hca_tally.sent, 1) + 1) % every)
        return false;
    atomic_fetch_add(&hca_tally.dropped, 1);
    if (qp->type == IBV_QPT_UD)
        atomic_fetch_add(&hca_tally.datagrams, 1);
    return true;
}

bool hca_unheard(struct hca_qp_own *qp)
{
    uint32_t every = atomic_load_explicit(&hca_trouble.acks, memory_order_relaxed);

    return every && qp->type == IBV_QPT_RC && ++qp->carried % every == 0;
}

/* The queue that its receives are in. */
static struct hca_rq *receives_of(struct hca_target *t, struct hca_srq **srq, uint32_t *pd)
{
    uint32_t slot = HCA_ONCE(t->qp->srq);

    *srq = NULL;
    *pd = t->qp->pd;
    if (slot == HCA_NONE)
        return &t->qp->rq;
    if (slot >= HCA_SRQS)
        return NULL;
    *srq = hca_srq_at(t->peer->segment, slot);
    *pd = (*srq)->pd;
    return atomic_load(&(*srq)->generation) ? &(*srq)->rq : NULL;
}

void hca_srq_look(struct hca_peer *p, struct hca_srq *srq)
{
    uint32_t limit = atomic_load_explicit(&srq->limit, memory_order_relaxed), none = 0;
    uint64_t left = atomic_load(&srq->rq.tail) - atomic_load(&srq->rq.head);

    if (!limit || left >= limit || !atomic_compare_exchange_strong(&srq->limit, &limit, 0))
        return;
    if (hca_trouble_now(&hca_trouble.limit_lost)) {
        atomic_fetch_add(&hca_tally.limit_lost, 1);
        return;
    }
    hca_async(p, &srq->async, srq->asynchronous, IBV_EVENT_SRQ_LIMIT_REACHED);
    /* Still armed, it comes again with the next receive that is taken. */
    if (hca_trouble_now(&hca_trouble.limit_again) && atomic_compare_exchange_strong(&srq->limit, &none, limit))
        atomic_fetch_add(&hca_tally.limit_again, 1);
}

bool hca_land(struct hca_target *t, struct hca_landing *l, bool *lost)
{
    struct hca_srq *srq;
    struct hca_rq *rq = receives_of(t, &srq, &l->pd);

    *lost = false;
    if (!rq || !hca_rq_take(t->peer->segment, rq, &l->id, l->sge, &l->n_sge)) {
        /* What is mapped of a process outlives it: it will not post receives any more. */
        *lost = hca_peer_dead(t->peer);
        return false;
    }
    if (srq)
        hca_srq_look(t->peer, srq);
    l->room = 0;
    for (uint32_t i = 0; i < l->n_sge; i++)
        l->room += l->sge[i].length;
    return true;
}

bool hca_list_check(char *segment, uint32_t pd, struct hca_sge *sge, uint32_t n, uint64_t length, unsigned access)
{
    for (uint32_t i = 0; i < n && length > 0; i++) {
        uint64_t part = sge[i].length < length ? sge[i].length : length;
        if (!hca_mr_check(segment, sge[i].lkey, pd, &sge[i].addr, part, access))
            return false;
        length -= part;
    }
    return true;
}

void hca_landed(struct hca_target *t, const struct hca_landing *l, enum ibv_wc_status status, struct hca_cqe *e)
{
    e->id = l->id;
    e->status = status;
    e->qp_num = t->qpn;
    hca_cq_push(t->peer, t->qp->recv_cq, e);
}

bool hca_source(const struct hca_qp_own *qp, const struct hca_swqe *w, unsigned access, struct hca_source *s)
{
    s->is_inline = w->flags & IBV_SEND_INLINE;
    if (s->is_inline) {
        s->sge[0] = (struct hca_sge){(uintptr_t)w->sge, w->length, 0};
        s->n = 1;
        return true;
    }
    s->n = w->n_sge;
    for (uint32_t i = 0; i < w->n_sge; i++)
        s->sge[i] = w->sge[i];
    return hca_list_check(hca.segment, qp->pd->number, s->sge, s->n, w->length, access);
}
