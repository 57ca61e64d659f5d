/* Put and get on the queue pair of low priority. */
#include "openib.h"

#include <string.h>

#define CONTROL_SENDS 2u
#define LIST          8u /* pieces that are posted by one call */

/* For one more work request than n. */
static bool room(const struct ib_qp *q, uint32_t n)
{
    return q->depth - (q->posted - q->done) > CONTROL_SENDS + n;
}

static int post(struct ib_module *m, struct ib_qp *q, bool read, uint64_t local, uint32_t lkey, uint64_t remote,
                uint32_t rkey, uint32_t len, struct st_btl_op *op)
{
    struct ibv_sge sge = {local, len, lkey};
    struct ibv_send_wr wr = {.wr_id = ib_wr_id(q),
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = remote, .rkey = rkey}};
    struct ibv_send_wr *bad;

    if (ibv_post_send(q->qp, &wr, &bad) != 0)
        return STRATA_ERR_AGAIN;
    ib_posted(q, op, IB_SENT_OP);
    ib_expect_low(m);
    return STRATA_OK;
}

/* ---- longer than one work request: in pieces, the last of which ends it ---- */

/* The next pieces for which there is room, as a list: one call of the device for all. What is signalled is the last
 * piece of all, and one of so many. */
static uint32_t plan(const struct ib_module *m, const struct ib_rdma *r, const struct ib_qp *q, struct ibv_send_wr *wr,
                     struct ibv_sge *sge)
{
    uint64_t at = 0;
    uint32_t n = 0;

    for (; n < LIST && at < r->left && room(q, n); n++) {
        uint32_t len = (uint32_t)(r->left - at < m->max_rdma ? r->left - at : m->max_rdma);
        bool signal = at + len == r->left || ((q->posted + n + 1) & q->every) == 0;
        sge[n] = (struct ibv_sge){r->local + at, len, r->lkey};
        wr[n] = (struct ibv_send_wr){.wr_id = ib_wr_id(q),
                                     .sg_list = &sge[n],
                                     .num_sge = 1,
                                     .opcode = r->read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                     .send_flags = signal ? IBV_SEND_SIGNALED : 0,
                                     .wr.rdma = {.remote_addr = r->remote + at, .rkey = r->rkey}};
        if (n)
            wr[n - 1].next = &wr[n];
        at += len;
    }
    return n;
}

static void advance(struct ib_module *m, struct ib_rdma *r)
{
    struct ib_qp *q = &r->peer->q[IB_LOW];
    struct ibv_send_wr wr[LIST], *bad;
    struct ibv_sge sge[LIST];
    uint32_t n, taken;

    while ((n = plan(m, r, q, wr, sge)) > 0) {
        taken = ibv_post_send(q->qp, wr, &bad) == 0 ? n : (uint32_t)(bad - wr);
        for (uint32_t i = 0; i < taken; i++) {
            r->local += sge[i].length;
            r->remote += sge[i].length;
            r->left -= sge[i].length;
            if (r->left == 0)
                ib_posted(q, r, IB_SENT_RDMA);
            else if (wr[i].send_flags & IBV_SEND_SIGNALED)
                ib_posted(q, NULL, IB_SENT_NOTHING);
            else
                q->posted++;
        }
        ib_expect_low(m);
        if (taken < n)
            return;
    }
    if (r->left == 0)
        st_list_remove(&r->node);
}

void ib_rdma_progress(struct ib_module *m)
{
    for (struct st_node *n = m->rdma_waiting.next, *next; n != &m->rdma_waiting; n = next) {
        next = n->next;
        advance(m, ST_CONTAINER(n, struct ib_rdma, node));
    }
}

void ib_rdma_ended(struct ib_rdma *r, int rc)
{
    struct ib_module *m = ib_module(r->peer->ep.btl);
    struct st_btl_op *op = r->op;

    st_slab_put(&m->rdmas, r);
    if (!m->closing)
        op->done(op, rc);
}

void ib_rdma_cancel(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    for (struct st_node *n = m->rdma_waiting.next, *next; n != &m->rdma_waiting; n = next) {
        struct ib_rdma *r = ST_CONTAINER(n, struct ib_rdma, node);
        next = n->next;
        if (r->peer != p)
            continue;
        st_list_remove(n);
        ib_rdma_ended(r, STRATA_ERR_PEER);
    }
}

static int in_pieces(struct ib_module *m, struct ib_peer *p, bool read, uint64_t local, uint32_t lkey, uint64_t remote,
                     uint32_t rkey, size_t len, struct st_btl_op *op)
{
    struct ib_rdma *r = st_slab_get(&m->rdmas);

    if (!r)
        return STRATA_ERR_AGAIN;
    *r = (struct ib_rdma){
        .peer = p, .op = op, .local = local, .remote = remote, .left = len, .lkey = lkey, .rkey = rkey, .read = read};
    st_list_append(&m->rdma_waiting, &r->node);
    ib_attend(m);
    advance(m, r);
    return STRATA_OK;
}

static int start(struct st_btl_endpoint *ep, bool read, const void *local, uint64_t remote, const uint8_t *remote_key,
                 size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_LOW];
    const struct ibv_mr *mr = ib_reg_mr(reg);
    struct ib_key key;
    int rc;

    if (ST_UNLIKELY(p->state != IB_UP)) {
        if (p->state == IB_FAILED || p->state == IB_GONE)
            return STRATA_ERR_PEER;
        if (p->state == IB_IDLE && ib_room_for_connection(m, p) && ib_wire_up_begin(p) == STRATA_ERR_UNREACHABLE)
            ib_peer_broken(p, "it cannot be reached");
        return STRATA_ERR_AGAIN;
    }
    memcpy(&key, remote_key, sizeof key);
    if (len > m->max_rdma)
        rc = in_pieces(m, p, read, (uintptr_t)local, mr->lkey, remote, key.rkey, len, op);
    else if (!room(q, 0))
        rc = STRATA_ERR_AGAIN;
    else
        rc = post(m, q, read, (uintptr_t)local, mr->lkey, remote, key.rkey, (uint32_t)len, op);
    if (rc != STRATA_OK)
        return rc;
    if (read)
        m->btl.bytes_got += len;
    else
        m->btl.bytes_sent += len;
    m->btl.messages_sent++;
    m->count.rdma++;
    return STRATA_OK;
}

int ib_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    return start(ep, true, local, remote, remote_key, len, reg, op);
}

int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    return start(ep, false, local, remote, remote_key, len, reg, op);
}
