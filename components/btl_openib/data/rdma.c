/* Put and get over the queue pair of low priority. */
#include "data/rdma.h"

#include <string.h>
#include "data/send.h"
#include "module.h"

static int rdma_post(struct ib_module *m, struct ib_qp *q, bool read, uint64_t local, uint32_t lkey, uint64_t remote,
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
    ib_expect_low(&m->poll);
    return STRATA_OK;
}

static int rdma_start(struct st_btl_endpoint *ep, bool read, const void *local, uint64_t remote,
                      const uint8_t *remote_key, size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_LOW];
    const struct ibv_mr *mr = ((const struct st_rcache_entry *)reg->handle)->handle;
    struct ib_key key;
    int rc;

    if (ST_UNLIKELY(p->state != IB_UP))
        return ib_send_not_now(p);
    memcpy(&key, remote_key, sizeof key);
    if (len > m->dev.max_rdma)
        rc = ib_rdma_begin(&(struct ib_rdma){.peer = p,
                                             .op = op,
                                             .local = (uintptr_t)local,
                                             .remote = remote,
                                             .left = len,
                                             .lkey = mr->lkey,
                                             .rkey = key.rkey,
                                             .read = read});
    else if (ib_qp_room(q) <= IB_RDMA_CONTROL)
        rc = STRATA_ERR_AGAIN;
    else
        rc = rdma_post(m, q, read, (uintptr_t)local, mr->lkey, remote, key.rkey, (uint32_t)len, op);
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
    return rdma_start(ep, true, local, remote, remote_key, len, reg, op);
}

int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    return rdma_start(ep, false, local, remote, remote_key, len, reg, op);
}
