/* The states of a queue pair and what each step between them needs: InfiniBand Architecture Specification, volume 1,
 * section 10.3.1 and table 93; the manual page of ibv_modify_qp. */
#include "cost.h"

#include <errno.h>

#define PATHS (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

enum { RC, UC, UD, N_TYPES };
struct step {
    enum ibv_qp_state from, to;
    struct {
        int needed, allowed;
    } type[N_TYPES];
};
static const struct step steps[] = {
    {IBV_QPS_RESET,
     IBV_QPS_INIT,
     {{IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
      {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
      {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0}}},
    {IBV_QPS_INIT,
     IBV_QPS_INIT,
     {{0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY}}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {{IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
       PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {{IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
       IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
      {IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS},
      {IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY}}},
    {IBV_QPS_RTS,
     IBV_QPS_RTS,
     {{0, IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
      {0, IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}}},
    {IBV_QPS_RTS,
     IBV_QPS_SQD,
     {{0, IBV_QP_EN_SQD_ASYNC_NOTIFY}, {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}, {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}}},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     {{0, IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | PATHS},
      {0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | PATHS},
      {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}}},
    {IBV_QPS_SQD,
     IBV_QPS_RTS,
     {{0, IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
      {0, IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS},
      {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}}},
    {IBV_QPS_SQE,
     IBV_QPS_RTS,
     {{-1, 0}, {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS}, {0, IBV_QP_CUR_STATE | IBV_QP_QKEY}}},
};

/* Whether this step exists and has what it needs, and nothing else. */
static bool step_fits(uint32_t qp_type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    int type = qp_type == IBV_QPT_RC ? RC : qp_type == IBV_QPT_UC ? UC : UD;

    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int needed = steps[i].type[type].needed;
        if (steps[i].from == from && steps[i].to == to)
            return needed >= 0 && (mask & needed) == needed && (mask & ~(needed | steps[i].type[type].allowed)) == 0;
    }
    return false;
}

static bool values_fit(const struct hca_qp_own *qp, const struct ibv_qp_attr *a, int mask)
{
    if ((mask & IBV_QP_PORT) && (a->port_num < 1 || a->port_num > hca.limits.ports))
        return false;
    if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index >= hca.limits.pkeys)
        return false;
    if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > hca.limits.mtu))
        return false;
    if ((mask & IBV_QP_AV) && (a->ah_attr.port_num < 1 || a->ah_attr.port_num > hca.limits.ports))
        return false;
    if ((mask & IBV_QP_CUR_STATE) && (uint32_t)a->cur_qp_state != hca_qp_state(qp->shared))
        return false;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > HCA_MAX_RD_ATOMIC)
        return false;
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC)
        return false;
    return !((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) && !((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) &&
           !((mask & IBV_QP_TIMEOUT) && a->timeout > 31) && !((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31);
}

/* What was set, and for peers what they need of it. */
static void remember(struct hca_qp_own *qp, const struct ibv_qp_attr *a, int mask)
{
    struct ibv_qp_attr *o = &qp->attr;
    struct hca_qp *s = qp->shared;

    if (mask & IBV_QP_PKEY_INDEX)
        o->pkey_index = a->pkey_index;
    if (mask & IBV_QP_PORT) {
        o->port_num = s->port = a->port_num;
        s->lid = hca_lid(s->device, a->port_num);
    }
    if (mask & IBV_QP_ACCESS_FLAGS)
        o->qp_access_flags = s->access = a->qp_access_flags;
    if (mask & IBV_QP_ACCESS_FLAGS)
        atomic_store(&qp->may_be_written, (a->qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0);
    if (mask & IBV_QP_QKEY)
        o->qkey = s->qkey = a->qkey;
    if (mask & IBV_QP_AV) {
        o->ah_attr = a->ah_attr;
        s->dlid = hca_route(&a->ah_attr);
    }
    if (mask & IBV_QP_PATH_MTU)
        o->path_mtu = a->path_mtu;
    if (mask & IBV_QP_DEST_QPN)
        o->dest_qp_num = s->dest_qpn = a->dest_qp_num;
    if (mask & IBV_QP_RQ_PSN) {
        o->rq_psn = s->rq_psn = a->rq_psn & 0xffffffu;
        atomic_store(&s->received, 0);
    }
    if (mask & IBV_QP_SQ_PSN) {
        o->sq_psn = a->sq_psn & 0xffffffu;
        qp->psn_sent = 0;
        qp->unheard = false;
    }
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        o->max_dest_rd_atomic = s->max_dest_rd_atomic = a->max_dest_rd_atomic;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        o->max_rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        o->min_rnr_timer = s->min_rnr_timer = a->min_rnr_timer;
    if (mask & IBV_QP_TIMEOUT)
        o->timeout = a->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        o->retry_cnt = a->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        o->rnr_retry = a->rnr_retry;
    if (mask & IBV_QP_PATH_MIG_STATE)
        o->path_mig_state = a->path_mig_state;
}

/* Back to the beginning: nothing outstanding, nothing of it in the completion queues. */
static void reset(struct hca_qp_own *qp)
{
    hca_qp_quiesce(qp);
    pthread_mutex_lock(&qp->lock);
    pthread_mutex_lock(&qp->rq_lock);
    /* First: a completion that is polled later would say again which sends it frees. */
    hca_cq_clean(qp->recv_cq, qp, false);
    if (qp->send_cq != qp->recv_cq)
        hca_cq_clean(qp->send_cq, qp, false);
    /* In this order: at no time does what stands between the two look like a send that is over. */
    hca_sends_forget(qp);
    atomic_store(&qp->sq_freed, qp->sq_next);
    qp->sq_free = qp->sq_next = qp->sq_tail;
    atomic_store(&qp->sq_done, qp->sq_tail);
    atomic_store(&qp->sq_freed, qp->sq_tail);
    hca_receives_forget(&qp->receives);
    qp->receives.added = qp->receives.taken = 0;
    qp->tries = qp->rnr_tries = 0;
    qp->retry_at = 0;
    qp->attr = (struct ibv_qp_attr){0};
    atomic_store(&qp->shared->rq.head, 0);
    atomic_store(&qp->shared->rq.tail, 0);
    atomic_store(&qp->shared->received, 0);
    atomic_store(&qp->shared->attention, 0);
    pthread_mutex_unlock(&qp->rq_lock);
    pthread_mutex_unlock(&qp->lock);
}

/* What follows from the new state. */
static void entered(struct hca_qp_own *qp, enum ibv_qp_state from, enum ibv_qp_state to, bool tell_drained)
{
    struct hca_peer *self = hca_peer_get(hca.index);

    if (to == IBV_QPS_RESET) {
        reset(qp);
    } else if (to == IBV_QPS_ERR) {
        hca_qp_quiesce(qp);
        hca_qp_flush(qp);
        if (qp->srq && from != IBV_QPS_ERR && self)
            hca_async(self, &qp->shared->async, qp->shared->asynchronous, IBV_EVENT_QP_LAST_WQE_REACHED);
    } else if (to == IBV_QPS_RTS || to == IBV_QPS_SQD) {
        pthread_mutex_lock(&qp->lock);
        qp->tell_drained = to == IBV_QPS_SQD && from != IBV_QPS_SQD && tell_drained;
        hca_engine_run(qp);
        pthread_mutex_unlock(&qp->lock);
    }
}

int hca_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *a, int mask)
{
    struct hca_qp_own *qp = (struct hca_qp_own *)ibv;
    enum ibv_qp_state from = (enum ibv_qp_state)hca_qp_state(qp->shared);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : from;
    uint32_t expected = from;

    if (!step_fits(qp->type, from, to, mask) || !values_fit(qp, a, mask))
        return EINVAL;
    pthread_mutex_lock(&qp->lock);
    remember(qp, a, mask);
    pthread_mutex_unlock(&qp->lock);
    /* A peer may have moved it to the error state meanwhile; that holds. */
    if (!atomic_compare_exchange_strong(&qp->shared->state, &expected, to) && to != IBV_QPS_RESET && to != IBV_QPS_ERR)
        return EINVAL;
    atomic_store(&qp->shared->state, to);
    ibv->state = to;
    entered(qp, (enum ibv_qp_state)expected, to, (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify);
    hca_cost_pay(HCA_COST_MODIFY, 1, HCA_COST_MODIFY, 0);
    return 0;
}
