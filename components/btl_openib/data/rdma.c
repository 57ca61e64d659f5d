/* Put and get over the queue pair of low priority. */
#include <strata/sdk/btl_rdma.h>
#include "data/rdma.h"

#include <string.h>
#include "data/send.h"
#include "module.h"

static int rdma_start(struct st_btl_endpoint *ep, bool read, const void *local, uint64_t remote,
                      const uint8_t *remote_key, size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_LOW];
    const struct ibv_mr *mr = ((const struct st_rcache_entry *)reg->handle)->handle;
    struct ibv_sge sge = {(uintptr_t)local, (uint32_t)len, mr->lkey};
    struct ibv_send_wr wr;
    struct ib_key key;
    int rc = STRATA_ERR_AGAIN;

    if (ST_UNLIKELY(p->state != IB_UP))
        return ib_send_not_now(p);
    memcpy(&key, remote_key, sizeof key);
    wr = ib_rdma_wr(q, read, &sge, remote, key.rkey, true);
    if (len > m->dev.max_rdma)
        rc = ib_rdma_begin(&(struct ib_rdma){.peer = p,
                                             .op = op,
                                             .local = (uintptr_t)local,
                                             .remote = remote,
                                             .left = len,
                                             .lkey = mr->lkey,
                                             .rkey = key.rkey,
                                             .read = read});
    else if (ib_qp_room(q) > IB_RDMA_CONTROL)
        rc = ib_rdma_post(q, &wr, op, IB_SENT_OP);
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
