/* The two queue pairs of a peer: making them, bringing them up, and finding them by their number. */
#include "openib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- by number ---- */

int ib_qp_map_init(struct ib_qp_map *map)
{
    map->n = 0;
    map->mask = 63;
    map->slot = calloc(map->mask + 1, sizeof *map->slot);
    return map->slot ? STRATA_OK : STRATA_ERR_NOMEM;
}

void ib_qp_map_destroy(struct ib_qp_map *map)
{
    free(map->slot);
    map->slot = NULL;
}

static uint32_t place(const struct ib_qp_map *map, uint32_t qpn)
{
    return (qpn * 0x9e3779b1u >> 7) & map->mask;
}

struct ib_qp *ib_qp_map_find(const struct ib_qp_map *map, uint32_t qpn)
{
    for (uint32_t i = place(map, qpn); map->slot[i]; i = (i + 1) & map->mask)
        if (map->slot[i]->number == qpn)
            return map->slot[i];
    return NULL;
}

static void insert(struct ib_qp_map *map, struct ib_qp *q)
{
    uint32_t i = place(map, q->number);

    while (map->slot[i])
        i = (i + 1) & map->mask;
    map->slot[i] = q;
    map->n++;
}

static int map_add(struct ib_qp_map *map, struct ib_qp *q)
{
    struct ib_qp_map old = *map;

    if (2 * (map->n + 1) > map->mask + 1) {
        map->mask = 2 * old.mask + 1;
        map->slot = calloc(map->mask + 1, sizeof *map->slot);
        if (!map->slot) {
            *map = old;
            return STRATA_ERR_NOMEM;
        }
        map->n = 0;
        for (uint32_t i = 0; i <= old.mask; i++)
            if (old.slot[i])
                insert(map, old.slot[i]);
        free(old.slot);
    }
    insert(map, q);
    return STRATA_OK;
}

/* Those behind it that it had pushed on move back. */
static void map_remove(struct ib_qp_map *map, uint32_t qpn)
{
    uint32_t i = place(map, qpn);

    while (map->slot[i] && map->slot[i]->number != qpn)
        i = (i + 1) & map->mask;
    if (!map->slot[i])
        return;
    map->slot[i] = NULL;
    map->n--;
    for (i = (i + 1) & map->mask; map->slot[i]; i = (i + 1) & map->mask) {
        struct ib_qp *q = map->slot[i];
        map->slot[i] = NULL;
        map->n--;
        insert(map, q);
    }
}

/* ---- receive queues per peer ---- */

uint32_t ib_own_receives(const struct ib_module *m, uint32_t priority)
{
    return m->spec[priority].shared ? 0 : m->spec[priority].credits + m->spec[priority].beyond;
}

static int post_receive(struct ib_qp *q, struct ib_buffer *b)
{
    struct ibv_recv_wr *bad;

    b->wr.next = NULL;
    if (ibv_post_recv(q->qp, &b->wr, &bad) != 0)
        return STRATA_ERR_NOMEM;
    b->peer = q->peer;
    q->receives++;
    return STRATA_OK;
}

void ib_rq_lost(struct ib_queue *queue, struct ib_qp *q, struct ib_buffer *b)
{
    if (q)
        q->receives--;
    b->peer = NULL;
    ib_buffer_put(&queue->receives, b);
}

void ib_rq_recycle(struct ib_queue *queue, struct ib_qp *q, struct ib_buffer *b)
{
    q->receives--;
    if (post_receive(q, b) != STRATA_OK) {
        b->peer = NULL;
        ib_buffer_put(&queue->receives, b);
    }
}

static int fill_own(struct ib_module *m, struct ib_qp *q)
{
    struct ib_pool *pool = &m->q[q->priority].receives;

    for (uint32_t i = 0; i < ib_own_receives(m, q->priority); i++) {
        struct ib_buffer *b = ib_buffer_get(pool);
        if (!b)
            return STRATA_ERR_NOMEM;
        if (post_receive(q, b) != STRATA_OK) {
            ib_buffer_put(pool, b);
            return STRATA_ERR_NOMEM;
        }
    }
    return STRATA_OK;
}

/* ---- making ---- */

static uint32_t pow2(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p *= 2;
    return p;
}

static int make(struct ib_module *m, struct ib_peer *p, uint32_t priority)
{
    struct ib_qp *q = &p->q[priority];
    struct ib_queue *queue = &m->q[priority];
    uint32_t depth = (uint32_t)m->par->send_depth[priority], own = ib_own_receives(m, priority);
    struct ibv_qp_init_attr a = {
        .send_cq = queue->cq,
        .recv_cq = queue->cq,
        .srq = queue->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = depth, .max_recv_wr = own, .max_send_sge = 2, .max_recv_sge = 1}};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = (uint16_t)m->par->pkey_index,
                               .port_num = m->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    int rc;

    if (priority == IB_HIGH)
        a.cap.max_inline_data = m->max_inline;
    memset(q, 0, sizeof *q);
    q->peer = p;
    q->priority = (uint8_t)priority;
    q->depth = depth;
    q->mask = pow2(depth) - 1;
    q->every = pow2(depth / 2 + 1) / 2 - 1;
    q->sent = calloc(q->mask + 1u, sizeof *q->sent);
    p->refusal = ENOMEM; /* unless the device says another reason */
    if (!q->sent || ib_cq_reserve(m, priority, depth + own) != STRATA_OK)
        return STRATA_ERR_NOMEM;
    q->qp = ibv_create_qp(m->pd, &a);
    if (!q->qp && st_mem_release_spare(m->btl.context)) /* its queues lie in memory that is locked */
        q->qp = ibv_create_qp(m->pd, &a);
    while (!q->qp && a.cap.max_inline_data && !m->inline_known) { /* devices refuse more than they can inline */
        a.cap.max_inline_data /= 2;
        q->qp = ibv_create_qp(m->pd, &a);
    }
    if (q->qp)
        q->number = q->qp->qp_num;
    else
        p->refusal = errno;
    if (!q->qp || map_add(&m->map, q) != STRATA_OK) {
        ib_cq_release(m, priority, depth + own);
        if (q->qp)
            (void)ibv_destroy_qp(q->qp);
        q->qp = NULL;
        return STRATA_ERR_NOMEM;
    }
    /* What the first one has holds for all: messages of any peer are built to be inlined up to there. */
    if (priority == IB_HIGH && !m->inline_known) {
        m->inline_known = true;
        m->max_inline = a.cap.max_inline_data;
        ib_brief_init(&m->brief, m->max_inline);
    }
    rc = ibv_modify_qp(q->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (rc != 0) {
        p->refusal = rc;
        return STRATA_ERR_SYSTEM;
    }
    return fill_own(m, q);
}

int ib_qps_make(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);
    int rc = STRATA_OK;

    for (uint32_t i = 0; i < IB_PRIORITIES && rc == STRATA_OK; i++)
        rc = make(m, p, i);
    if (rc != STRATA_OK) {
        ib_qps_unmake(p);
        return rc;
    }
    p->counted = true;
    m->n_up++;
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        p->q[i].granted = ib_grant(m, i);
        p->q[i].window = 3 * p->q[i].granted / 4; /* never 0: 2 are granted at least */
    }
    m->hot = !m->stashed;
    memset(p->owed, 0, sizeof p->owed);
    ib_srq_retarget(m);
    return STRATA_OK;
}

/* Nothing can have come to them, so no completion brings the buffers of their own receives back. */
void ib_qps_unmake(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    ib_qps_destroy(p);
    for (uint32_t i = 0; i < IB_PRIORITIES; i++)
        ib_pool_take_back(&m->q[i].receives, p);
}

void ib_qps_destroy(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    ib_methods_disconnected(p);
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        struct ib_qp *q = &p->q[i];
        ib_list_drop(m, q);
        /* Closed in agreement: all has arrived, though the device may not have said so of the last messages. */
        ib_sent_drop(q, p->state == IB_CLOSED ? STRATA_OK : STRATA_ERR_PEER);
        if (q->qp) {
            map_remove(&m->map, q->qp->qp_num);
            ib_cq_release(m, i, q->depth + ib_own_receives(m, i));
            (void)ibv_destroy_qp(q->qp);
        }
        if (m->last == q) {
            m->last = NULL;
            m->last_number = 0; /* no queue pair has this number */
        }
        free(q->sent);
        memset(q, 0, sizeof *q);
    }
    if (p->counted) {
        m->n_up--;
        ib_srq_fewer(m);
    }
    p->counted = false;
    if (m->n_up == 0)
        m->hot = false;
}

/* ---- bringing up ---- */

static enum ibv_mtu path_mtu(const struct ib_module *m, const struct ib_conn *theirs)
{
    return theirs->mtu < (uint8_t)m->mtu ? (enum ibv_mtu)theirs->mtu : m->mtu;
}

/* Where the peer is; an error: by the method of connecting there is no way any more. */
static int path_to(struct ib_module *m, struct ib_peer *p, struct ibv_ah_attr *a)
{
    const struct ib_card *card = &p->up->card;

    *a = (struct ibv_ah_attr){.dlid = card->lid,
                              .sl = (uint8_t)m->par->service_level,
                              .is_global = m->global,
                              .port_num = m->port,
                              .grh = {.sgid_index = m->gid_index, .hop_limit = 64}};
    memcpy(a->grh.dgid.raw, card->gid, sizeof card->gid);
    return p->up->method->path ? p->up->method->path(m, p, a) : STRATA_OK;
}

static int to_rtr(struct ib_module *m, struct ib_qp *q, const struct ib_conn *theirs, const struct ibv_ah_attr *path)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = path_mtu(m, theirs),
                            .dest_qp_num = theirs->qpn[q->priority],
                            .rq_psn = theirs->psn[q->priority],
                            .max_dest_rd_atomic = (uint8_t)(m->attr.max_qp_rd_atom < 16 ? m->attr.max_qp_rd_atom : 16),
                            .min_rnr_timer = ib_rnr_code(m, q->priority),
                            .ah_attr = *path};

    return ibv_modify_qp(q->qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ib_module *m, struct ib_qp *q, const struct ib_conn *theirs)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .sq_psn = q->qp->qp_num & 0xffffffu,
                            .timeout = (uint8_t)m->par->timeout,
                            .retry_cnt = (uint8_t)m->par->retry_count,
                            .rnr_retry = 7, /* for ever: credits bound it, and a receiver may be stopped for long */
                            .max_rd_atomic = theirs->rd_atomic < m->max_reads ? theirs->rd_atomic : m->max_reads};

    return ibv_modify_qp(q->qp, &a,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

int ib_qps_connect(struct ib_peer *p, const struct ib_conn *theirs)
{
    struct ib_module *m = ib_module(p->ep.btl);
    struct ibv_ah_attr path;

    if (path_to(m, p, &path) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        struct ib_qp *q = &p->q[i];
        if (to_rtr(m, q, theirs, &path) != 0 || to_rts(m, q, theirs) != 0)
            return STRATA_ERR_SYSTEM;
        q->packet = m->cuts_packets ? 128u << path_mtu(m, theirs) : IB_NO_PACKETS;
        p->up->credits[i] = theirs->credits[i];
    }
    return STRATA_OK;
}
