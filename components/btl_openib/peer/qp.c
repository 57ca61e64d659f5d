/* The two queue pairs of a peer: making them and bringing them up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/account.h>
#include "module.h"

static uint32_t qp_pow2(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

/* The first queue pair's length holds for all: messages of any peer are built to be inlined up to there. Devices refuse
 * more than they can inline. */
static struct ibv_qp *qp_create(struct ib_module *m, uint32_t priority, uint32_t depth)
{
    const struct ib_queue *queue = &m->q[priority];
    struct ibv_qp_init_attr a = {.send_cq = queue->cq,
                                 .recv_cq = queue->cq,
                                 .srq = queue->srq,
                                 .qp_type = IBV_QPT_RC,
                                 .cap = {.max_send_wr = depth,
                                         .max_recv_wr = ib_own_receives(queue->spec),
                                         .max_send_sge = 2,
                                         .max_recv_sge = 1,
                                         .max_inline_data = priority == IB_HIGH ? m->qps.max_inline : 0}};
    struct st_account_mark mark;

    st_account_enter(m->btl.context, ST_ACCOUNT_HEAP, &mark);
    struct ibv_qp *qp = ibv_create_qp(m->dev.pd, &a);
    if (!qp && st_mem_release_spare(m->btl.context)) /* its queues lie in memory that is locked */
        qp = ibv_create_qp(m->dev.pd, &a);
    while (!qp && a.cap.max_inline_data && !m->qps.inline_known) {
        a.cap.max_inline_data /= 2;
        qp = ibv_create_qp(m->dev.pd, &a);
    }
    if (qp && priority == IB_HIGH && !m->qps.inline_known) {
        m->qps.inline_known = true;
        m->qps.max_inline = a.cap.max_inline_data;
    }
    st_account_leave(m->btl.context, &mark);
    return qp;
}

static int qp_make(struct ib_module *m, struct ib_peer *p, uint32_t priority)
{
    struct ib_qp *q = &p->q[priority];
    struct ib_queue *queue = &m->q[priority];
    uint32_t depth = (uint32_t)m->dev.par->send_depth[priority], own = ib_own_receives(queue->spec);
    int rc;

    *q = (struct ib_qp){.peer = p,
                        .priority = (uint8_t)priority,
                        .depth = depth,
                        .mask = qp_pow2(depth) - 1,
                        .every = qp_pow2(depth / 2 + 1) / 2 - 1};
    q->sent = calloc(q->mask + 1u, sizeof *q->sent);
    p->refusal = ENOMEM; /* unless the device says another reason */
    if (!q->sent || ib_cq_reserve(queue, depth + own) != STRATA_OK)
        return STRATA_ERR_NOMEM;
    q->qp = qp_create(m, priority, depth);
    if (q->qp)
        q->number = q->qp->qp_num;
    else
        p->refusal = errno;
    if (!q->qp || ib_qp_map_add(&m->qps.map, q) != STRATA_OK) {
        ib_cq_release(queue, depth + own);
        if (q->qp)
            (void)ibv_destroy_qp(q->qp);
        q->qp = NULL;
        return STRATA_ERR_NOMEM;
    }
    rc = ib_device_qp_init(&m->dev, q->qp, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    if (rc == 0)
        return ib_rq_fill(queue, q);
    p->refusal = rc;
    return STRATA_ERR_SYSTEM;
}

/* Connected peers use another RNR timer than before. */
static void qps_slow_down(struct ib_module *m, struct ib_queue *queue)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = ib_rnr_code(queue)};

    if (a.min_rnr_timer == queue->rnr_code)
        return;
    queue->rnr_code = a.min_rnr_timer;
    for (struct ib_peer *p = m->peers.all; p; p = p->next)
        if (p->q[queue->priority].qp && p->state >= IB_ANSWERED && p->state < IB_CLOSED)
            (void)ibv_modify_qp(p->q[queue->priority].qp, &a, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

/* One more peer has queue pairs, or one less. For one less nothing is posted, and connected peers keep their RNR timer
 * until the next one more. */
static void qps_count(struct ib_module *m, bool more)
{
    m->qps.n_peers += more ? 1u : -1u;
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        m->q[i].n_peers = m->qps.n_peers;
        if (!m->q[i].srq)
            continue;
        if (more)
            qps_slow_down(m, &m->q[i]);
        ib_srq_retarget(&m->q[i], more);
    }
}

int ib_qps_make(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);
    int rc = STRATA_OK;

    for (uint32_t i = 0; i < IB_PRIORITIES && rc == STRATA_OK; i++)
        rc = qp_make(m, p, i);
    if (rc != STRATA_OK) {
        ib_qps_destroy(p, false);
        return rc;
    }
    p->counted = true;
    qps_count(m, true);
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        p->q[i].granted = ib_srq_grant(&m->q[i]);
        p->q[i].window = 3 * p->q[i].granted / 4; /* never 0: 2 are granted at least */
    }
    memset(p->owed, 0, sizeof p->owed);
    return STRATA_OK;
}

void ib_qps_destroy(struct ib_peer *p, bool used)
{
    struct ib_module *m = ib_module_of(p);
    struct st_account_mark mark;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        struct ib_qp *q = &p->q[i];
        if (q->qp) {
            ib_qp_map_remove(&m->qps.map, q->number);
            ib_cq_release(&m->q[i], q->depth + ib_own_receives(m->q[i].spec));
            st_account_enter(m->btl.context, ST_ACCOUNT_HEAP, &mark);
            (void)ibv_destroy_qp(q->qp);
            st_account_leave(m->btl.context, &mark);
        }
        free(q->sent);
        memset(q, 0, sizeof *q);
        if (!used) /* nothing can have come, so no completion brings the buffers of its own receives back */
            ib_pool_take_back(&m->q[i].receives, p);
    }
    if (p->counted)
        qps_count(m, false);
    p->counted = false;
}

void ib_qps_error(struct ib_peer *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

    for (int i = 0; i < IB_PRIORITIES; i++)
        if (p->q[i].qp)
            (void)ibv_modify_qp(p->q[i].qp, &a, IBV_QP_STATE);
}

/* ---- bringing up ---- */

int ib_qps_connect(struct ib_peer *p, const struct ib_conn *theirs, const struct ibv_ah_attr *path)
{
    struct ib_module *m = ib_module_of(p);
    const struct ib_device *d = &m->dev;
    enum ibv_mtu mtu = theirs->mtu < (uint8_t)d->mtu ? (enum ibv_mtu)theirs->mtu : d->mtu;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        struct ib_qp *q = &p->q[i];
        struct ibv_qp_attr a = {.path_mtu = mtu,
                                .dest_qp_num = theirs->qpn[i],
                                .rq_psn = ib_conn_psn(theirs->qpn[i]),
                                .sq_psn = ib_conn_psn(q->number),
                                .max_dest_rd_atomic = ib_device_reads(d),
                                .max_rd_atomic = theirs->rd_atomic < d->max_reads ? theirs->rd_atomic : d->max_reads,
                                .min_rnr_timer = ib_rnr_code(&m->q[i]),
                                .ah_attr = *path};
        if (ib_device_qp_connect(d, q->qp, &a) != 0)
            return STRATA_ERR_SYSTEM;
        q->packet = d->cuts_packets ? 128u << mtu : IB_NO_PACKETS;
    }
    return STRATA_OK;
}
