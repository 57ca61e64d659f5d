/* Two queue pairs of a module that are connected to each other. */
#include <string.h>
#include <strata/sdk/clock.h>
#include "module.h"

static struct ibv_qp *loop_qp(struct ib_module *m, struct ibv_cq *cq, uint32_t inlined)
{
    struct ibv_qp_init_attr a = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {IB_LOOP_DEPTH, IB_LOOP_DEPTH, 1, 1, inlined}};

    return ibv_create_qp(m->dev.pd, &a);
}

static bool loop_connect(struct ib_module *m, struct ibv_qp *qp, const struct ibv_qp *other)
{
    struct ibv_qp_attr a = {.path_mtu = m->dev.mtu,
                            .dest_qp_num = other->qp_num,
                            .min_rnr_timer = 1,
                            .ah_attr = ib_device_path(&m->dev, m->dev.gid.raw, m->dev.port_attr.lid)};

    return ib_device_qp_init(&m->dev, qp, IBV_ACCESS_REMOTE_WRITE) == 0 && ib_device_qp_connect(&m->dev, qp, &a) == 0;
}

void ib_loop_end(struct ib_loop *l)
{
    for (int i = 0; i < 2; i++)
        if (l->qp[i])
            (void)ibv_destroy_qp(l->qp[i]);
    if (l->cq)
        (void)ibv_destroy_cq(l->cq);
}

bool ib_loop_begin(struct ib_module *m, struct ib_loop *l, uint32_t inlined)
{
    memset(l, 0, sizeof *l);
    l->cq = ibv_create_cq(m->dev.verbs, 4 * (int)IB_LOOP_DEPTH, NULL, NULL, 0);
    for (int i = 0; i < 2 && l->cq; i++)
        l->qp[i] = loop_qp(m, l->cq, inlined);
    if (l->qp[0] && l->qp[1] && loop_connect(m, l->qp[0], l->qp[1]) && loop_connect(m, l->qp[1], l->qp[0]))
        return true;
    ib_loop_end(l);
    return false;
}

bool ib_loop_take(struct ib_loop *l, int n, uint64_t until)
{
    struct ibv_wc wc;

    while (n > 0) {
        int got = ibv_poll_cq(l->cq, 1, &wc);
        if (got < 0 || (got > 0 && wc.status != IBV_WC_SUCCESS) || (got == 0 && st_now_ns() > until))
            return false;
        n -= got;
    }
    return true;
}
