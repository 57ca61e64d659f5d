/* Messages over connections, reliable and unreliable: the rules of the InfiniBand Architecture Specification, volume 1,
 * chapter 9.7 (reliable) and 9.8 (unreliable connected). */
#include "deliver.h"

#include <string.h>

#define MAX_MESSAGE (1u << 30)

/* How it ended for the requester when the responder refuses. */
struct refusal {
    enum ibv_wc_status status;
    int event; /* that the responder gets; -1: none */
};
static const struct refusal bad_access = {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR};
static const struct refusal bad_request = {IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR};
static const struct refusal bad_receive = {IBV_WC_REM_OP_ERR, -1};

static enum hca_outcome refuse(struct hca_target *t, const struct refusal *why, enum ibv_wc_status *status)
{
    *status = why->status;
    /* Who writes without leave over an unreliable connection is not heard: specification, 9.9.3, class D. */
    if (t->qp->type == IBV_QPT_UC && why == &bad_access)
        return HCA_DONE;
    hca_qp_break(t->peer, t->qp, why->event);
    return HCA_DONE;
}

/* What a copy's outcome means for the requester. */
static enum hca_outcome copied(struct hca_target *t, enum hca_copied how, const struct refusal *remote,
                               enum ibv_wc_status *status)
{
    switch (how) {
    case HCA_COPIED:
        return HCA_DONE;
    case HCA_LOCAL_FAULT:
        *status = IBV_WC_LOC_PROT_ERR;
        return HCA_DONE;
    case HCA_REMOTE_FAULT:
        return refuse(t, remote, status);
    default:
        return HCA_AGAIN_LOST;
    }
}

static enum hca_outcome send(const struct hca_qp_own *qp, const struct hca_swqe *w, struct hca_target *t,
                             const struct hca_source *from, enum ibv_wc_status *status)
{
    bool imm = w->opcode == IBV_WR_SEND_WITH_IMM;
    struct hca_cqe e = {.opcode = IBV_WC_RECV,
                        .byte_len = w->length,
                        .imm = w->imm,
                        .flags = imm ? IBV_WC_WITH_IMM : 0,
                        .src_qp = qp->ibv.qp_num,
                        .slid = qp->shared->lid,
                        .solicited = (w->flags & IBV_SEND_SOLICITED) != 0};
    struct hca_landing l;
    enum hca_copied how;
    bool lost_for_good;

    if (!hca_land(t, &l, &lost_for_good))
        return lost_for_good ? HCA_AGAIN_LOST : HCA_AGAIN_RNR;
    if (w->length > l.room) {
        hca_landed(t, &l, IBV_WC_LOC_LEN_ERR, &e);
        return refuse(t, &(struct refusal){IBV_WC_REM_INV_REQ_ERR, -1}, status);
    }
    if (!hca_list_check(t->peer->segment, l.pd, l.sge, l.n_sge, w->length, IBV_ACCESS_LOCAL_WRITE)) {
        hca_landed(t, &l, IBV_WC_LOC_PROT_ERR, &e);
        return refuse(t, &bad_receive, status);
    }
    e.parcel = l.n_sge == 1 ? (uint8_t)hca_parcel_send(t->peer, from, w->length) : 0;
    how = e.parcel ? HCA_COPIED : hca_transfer(t->peer, HCA_WRITE, from->sge, from->n, l.sge, l.n_sge, w->length);
    hca_landed(t, &l,
               how == HCA_COPIED         ? IBV_WC_SUCCESS
               : how == HCA_REMOTE_FAULT ? IBV_WC_LOC_PROT_ERR
                                         : IBV_WC_WR_FLUSH_ERR,
               &e);
    return copied(t, how, &bad_receive, status);
}

/* The range of the target's memory that a request names; false: it may not. */
static bool remote_range(struct hca_target *t, const struct hca_swqe *w, uint32_t length, unsigned access,
                         struct hca_sge *to)
{
    *to = (struct hca_sge){w->remote_addr, length, w->rkey};
    return length == 0 ||
           ((t->qp->access & access) && hca_mr_check(t->peer->segment, w->rkey, t->qp->pd, &to->addr, length, access));
}

static enum hca_copied write_in_order(struct hca_peer *p, const struct hca_source *from, const struct hca_sge *to)
{
    return hca_store(p, from, to) ? HCA_COPIED
                                  : hca_transfer(p, HCA_WRITE_IN_ORDER, from->sge, from->n, to, 1, to->length);
}

static enum hca_copied write_to(const struct hca_target *t, const struct hca_source *from, const struct hca_sge *to)
{
    const uint32_t torn_us = atomic_load_explicit(&hca_trouble.torn_us, memory_order_relaxed);

    return __builtin_expect(torn_us != 0, false) ? hca_torn_write(torn_us, t->peer, from, to, write_in_order)
                                                 : write_in_order(t->peer, from, to);
}

static enum hca_outcome rdma_write(const struct hca_qp_own *qp, const struct hca_swqe *w, struct hca_target *t,
                                   const struct hca_source *from, enum ibv_wc_status *status)
{
    struct hca_cqe e = {.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                        .byte_len = w->length,
                        .imm = w->imm,
                        .flags = IBV_WC_WITH_IMM,
                        .src_qp = qp->ibv.qp_num,
                        .slid = qp->shared->lid,
                        .solicited = (w->flags & IBV_SEND_SOLICITED) != 0};
    struct hca_landing l;
    struct hca_sge to;
    enum hca_copied how;
    bool lost_for_good;

    if (!remote_range(t, w, w->length, IBV_ACCESS_REMOTE_WRITE, &to))
        return refuse(t, &bad_access, status);
    if (w->opcode == IBV_WR_RDMA_WRITE)
        return copied(t, write_to(t, from, &to), &bad_access, status);
    if (!hca_land(t, &l, &lost_for_good))
        return lost_for_good ? HCA_AGAIN_LOST : HCA_AGAIN_RNR;
    /* The completion comes before the error state, whose flush and last event are to come after it. */
    how = write_to(t, from, &to);
    hca_landed(t, &l, how == HCA_COPIED ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, &e);
    return copied(t, how, &bad_access, status);
}

static enum hca_outcome rdma_read(const struct hca_swqe *w, struct hca_target *t, const struct hca_source *into,
                                  enum ibv_wc_status *status)
{
    struct hca_sge from;

    if (t->qp->max_dest_rd_atomic == 0)
        return refuse(t, &bad_request, status);
    if (!remote_range(t, w, w->length, IBV_ACCESS_REMOTE_READ, &from))
        return refuse(t, &bad_access, status);
    return copied(t, hca_transfer(t->peer, HCA_READ, into->sge, into->n, &from, 1, w->length), &bad_access, status);
}

static _Atomic(uint32_t) *lock_for(struct hca_target *t, uint64_t addr)
{
    struct hca_header *h = (struct hca_header *)(void *)t->peer->segment;

    return &h->atomic_lock[addr / 8 % HCA_ATOMIC_LOCKS];
}

static enum hca_outcome atomic_op(const struct hca_swqe *w, struct hca_target *t, const struct hca_source *into,
                                  enum ibv_wc_status *status)
{
    struct hca_peer *self = hca_peer_get(hca.index);
    struct hca_sge at, here;
    uint64_t was = 0, next;
    _Atomic(uint32_t) *lock;
    enum hca_copied how;

    if (w->remote_addr % 8 != 0 || t->qp->max_dest_rd_atomic == 0)
        return refuse(t, &bad_request, status);
    if (!remote_range(t, w, 8, IBV_ACCESS_REMOTE_ATOMIC, &at))
        return refuse(t, &bad_access, status);
    here = (struct hca_sge){(uintptr_t)&was, 8, 0};
    lock = lock_for(t, at.addr);
    if (!hca_shared_lock(t->peer, lock, 0))
        return HCA_AGAIN_LOST;
    how = hca_transfer(t->peer, HCA_READ, &here, 1, &at, 1, 8);
    next = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? was + w->compare_add : was == w->compare_add ? w->swap : was;
    here.addr = (uintptr_t)&next;
    if (how == HCA_COPIED)
        how = hca_transfer(t->peer, HCA_WRITE, &here, 1, &at, 1, 8);
    hca_shared_unlock(lock);
    if (how != HCA_COPIED)
        return copied(t, how, &bad_access, status);
    here.addr = (uintptr_t)&was;
    if (hca_transfer(self, HCA_WRITE, &here, 1, into->sge, into->n, 8) != HCA_COPIED)
        *status = IBV_WC_LOC_PROT_ERR;
    return HCA_DONE;
}

/* For fetch_lines(): only addresses, so that it does not matter what they were of by then. */
static void note_lines(struct hca_qp_own *qp, const struct hca_target *t)
{
    uint32_t srq = HCA_ONCE(t->qp->srq);

    qp->lines[0] = &t->qp->users;
    qp->lines[1] = srq < HCA_SRQS ? &hca_srq_at(t->peer->segment, srq)->rq : &t->qp->rq;
    qp->lines[2] = hca_cq_at(t->peer->segment, t->qp->recv_cq % HCA_CQS);
}

static enum hca_outcome perform(const struct hca_qp_own *qp, const struct hca_swqe *w, struct hca_target *t,
                                const struct hca_source *list, enum ibv_wc_status *status)
{
    switch (w->opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return send(qp, w, t, list, status);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return rdma_write(qp, w, t, list, status);
    case IBV_WR_RDMA_READ:
        return rdma_read(w, t, list, status);
    default:
        return atomic_op(w, t, list, status);
    }
}

/* Whether the two ends agree that they are connected, and where in the sequence they are. */
static bool connected(const struct hca_qp_own *qp, const struct hca_target *t)
{
    uint32_t psn = (qp->attr.sq_psn + qp->psn_sent + qp->unheard) & 0xffffffu;
    uint32_t expected =
        (t->qp->rq_psn + (uint32_t)atomic_load_explicit(&t->qp->received, memory_order_relaxed)) & 0xffffffu;

    return t->qp->dest_qpn == qp->ibv.qp_num && t->qp->lid == qp->shared->dlid && t->qp->dlid == qp->shared->lid &&
           (psn == expected || qp->type == IBV_QPT_UC) &&
           hca_port_up(hca.segment, qp->shared->device, qp->shared->port) &&
           hca_port_up(t->peer->segment, t->qp->device, t->qp->port);
}

/* The fault `connections down`. */
static bool cut(const struct hca_qp_own *qp, const struct hca_swqe *w)
{
    if (!atomic_load_explicit(&hca_trouble.down, memory_order_relaxed))
        return false;
    if (qp->tries == 0) {
        atomic_fetch_add(&hca_tally.cut, 1);
        if (w->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM && w->length > 0)
            atomic_fetch_add(&hca_tally.cut_writes, 1);
    }
    return true;
}

static enum hca_outcome to_target(struct hca_qp_own *qp, const struct hca_swqe *w, struct hca_target *t,
                                  const struct hca_source *list, enum ibv_wc_status *status)
{
    enum hca_outcome outcome;

    if (!connected(qp, t) || cut(qp, w) || hca_lost(qp))
        return HCA_AGAIN_LOST;
    if (qp->unheard) { /* a duplicate: acknowledged, and nothing else */
        qp->unheard = false;
        qp->psn_sent++;
        return HCA_DONE;
    }
    qp->peer_rnr_timer = t->qp->min_rnr_timer;
    if (qp->type == IBV_QPT_RC && hca_trouble_now(&hca_trouble.rnr))
        return HCA_AGAIN_RNR;
    outcome = perform(qp, w, t, list, status);
    if (outcome == HCA_DONE && *status == IBV_WC_SUCCESS) {
        if (atomic_fetch_add_explicit(&t->qp->received, 1, memory_order_relaxed) == 0 &&
            atomic_load_explicit(&t->qp->state, memory_order_relaxed) == IBV_QPS_RTR)
            hca_async(t->peer, &t->qp->async, t->qp->asynchronous, IBV_EVENT_COMM_EST);
        note_lines(qp, t);
        if (hca_unheard(qp)) {
            qp->unheard = true;
            return HCA_AGAIN_LOST;
        }
        qp->psn_sent++;
    }
    return outcome;
}

enum hca_outcome hca_deliver(struct hca_qp_own *qp, const struct hca_swqe *w, enum ibv_wc_status *status)
{
    bool fetches = w->opcode >= IBV_WR_RDMA_READ;
    enum hca_outcome outcome = HCA_AGAIN_LOST;
    struct hca_source list;
    struct hca_target t;

    *status = IBV_WC_SUCCESS;
    if (w->length > MAX_MESSAGE || (w->opcode > IBV_WR_RDMA_READ && w->length < 8)) {
        *status = IBV_WC_LOC_LEN_ERR;
        return HCA_DONE;
    }
    if (!hca_source(qp, w, fetches ? IBV_ACCESS_LOCAL_WRITE : 0, &list)) {
        *status = IBV_WC_LOC_PROT_ERR;
        return HCA_DONE;
    }
    if (hca_take_hold(qp->attr.dest_qp_num, qp->type, &t)) {
        /* Where nothing is copied the kernel does not tell us that the process has ended. */
        if (w->length > 0 || !hca_peer_dead(t.peer))
            outcome = to_target(qp, w, &t, &list, status);
        hca_let_go(&t);
    }
    if (qp->type != IBV_QPT_UC)
        return outcome;
    /* Nobody tells the sender of an unreliable connection. */
    if (*status != IBV_WC_LOC_PROT_ERR)
        *status = IBV_WC_SUCCESS;
    return HCA_DONE;
}
