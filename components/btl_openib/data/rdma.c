/* Put and get over the queue pair of low priority. */
#include <strata/sdk/btl_rdma.h>
#include "data/rdma.h"

#include <string.h>
#include "data/send.h"
#include "module.h"

struct ib_rdma ib_rdma_make(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                            size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    const struct ibv_mr *mr = ((const struct st_rcache_entry *)reg->handle)->handle;
    struct ib_key key;

    memcpy(&key, remote_key, sizeof key);
    return (struct ib_rdma){.peer = ib_peer(ep),
                            .op = op,
                            .local = (uintptr_t)local,
                            .remote = remote,
                            .left = len,
                            .lkey = mr->lkey,
                            .rkey = key.rkey};
}

void ib_rdma_count(struct ib_module *m, bool read, size_t len)
{
    *(read ? &m->btl.bytes_got : &m->btl.bytes_sent) += len;
    m->btl.messages_sent++;
    m->count.rdma++;
}

static int rdma_start(struct st_btl_endpoint *ep, bool read, const void *local, uint64_t remote,
                      const uint8_t *remote_key, size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_LOW];
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    int rc = STRATA_ERR_AGAIN;

    if (ST_UNLIKELY(p->state != IB_UP))
        return ib_send_not_now(p);
    struct ib_rdma all = ib_rdma_make(ep, local, remote, remote_key, len, reg, op);
    all.read = read;
    if (len > m->dev.max_rdma) {
        rc = ib_rdma_begin(&all);
    } else if (ib_qp_room(q) > IB_RDMA_CONTROL) {
        wr = ib_rdma_piece(q, &all, 0, (uint32_t)len, true, &sge);
        rc = ib_rdma_post(q, &wr, op, IB_SENT_OP);
    }
    if (rc == STRATA_OK)
        ib_rdma_count(m, read, len);
    return rc;
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
