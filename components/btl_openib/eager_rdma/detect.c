/* Which detection is right for a queue pair of the receiver's. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <string.h>
#include "module.h"

typedef int (*in_order_fn)(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/* Looked for at run time: libibverbs before 1.14 does not have it. */
static bool detect_in_order(struct ibv_qp *qp)
{
    void *symbol = dlsym(RTLD_DEFAULT, "ibv_query_qp_data_in_order");
    in_order_fn in_order;

    if (!symbol)
        return false;
    memcpy(&in_order, &symbol, sizeof in_order);
    return in_order(qp, IBV_WR_RDMA_WRITE, 0) == 1;
}

enum ib_detect ib_detect_for(const struct ib_module *m, struct ib_peer *p)
{
    switch (m->dev.par->eager_rdma_detect) {
    case IB_PARAM_FLAG:
        return IB_DETECT_FLAG;
    case IB_PARAM_SEAL:
        return IB_DETECT_SEAL;
    case IB_PARAM_IMM:
        return IB_DETECT_IMM;
    default:
        return detect_in_order(p->q[IB_HIGH].qp) ? IB_DETECT_FLAG : IB_DETECT_SEAL;
    }
}
