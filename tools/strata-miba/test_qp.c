/* Queue pairs: creating, changing and destroying them, by the number of entries of their queues. */
#include "config.h"
#include "tests.h"

#include <errno.h>
#include <stdlib.h>
#include "measure.h"

#define MOST_PAIRS 256u
#define PSN        0x4321u

enum { CREATE, TO_INIT, TO_RTR, TO_RTS, DESTROY };

struct pairs {
    struct miba *m;
    struct ibv_cq *cq;
    uint32_t entries;
    bool connected;
    struct ibv_qp *qp[MOST_PAIRS];
};

/* Each step is done for all pairs of a batch before the next one, and each has a figure. */
static int step(struct pairs *p, int what, unsigned i)
{
    const struct device *d = &p->m->dev;
    struct ibv_qp_init_attr create = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = p->entries, .max_recv_wr = p->entries, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .port_num = d->port_number,
                               .pkey_index = (uint16_t)p->m->set.pkey_index,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = device_mtu_code(device_mtu(d, &p->m->set)),
                              .dest_qp_num = p->qp[i] ? p->qp[i]->qp_num : 0,
                              .rq_psn = PSN,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 12,
                              .ah_attr = {.dlid = d->port.lid, .port_num = d->port_number}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .sq_psn = PSN, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};

    switch (what) {
    case CREATE:
        p->qp[i] = ibv_create_qp(d->pd, &create);
        return p->qp[i] ? 0 : errno;
    case TO_INIT:
        return ibv_modify_qp(p->qp[i], &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    case TO_RTR:
        if (d->port.link_layer == IBV_LINK_LAYER_ETHERNET || d->port.lid == 0) {
            rtr.ah_attr.is_global = 1;
            rtr.ah_attr.grh.dgid = d->gid;
            rtr.ah_attr.grh.sgid_index = (uint8_t)d->gid_index;
            rtr.ah_attr.grh.hop_limit = 64;
        }
        return ibv_modify_qp(p->qp[i], &rtr,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    case TO_RTS:
        return ibv_modify_qp(p->qp[i], &rts,
                             IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                 IBV_QP_MAX_QP_RD_ATOMIC);
    default:
        break;
    }
    struct ibv_qp *gone = p->qp[i];
    p->qp[i] = NULL;
    return ibv_destroy_qp(gone);
}

static enum miba_status batch(void *arg, unsigned n, double *ns)
{
    static const char *const verbs[] = {"ibv_create_qp", "ibv_modify_qp", "ibv_modify_qp", "ibv_modify_qp",
                                        "ibv_destroy_qp"};
    static const char *const of[] = {NULL, "to INIT", "to RTR", "to RTS", NULL};
    struct pairs *p = arg;
    int error = 0, what = CREATE, figure = 0;

    for (; what <= DESTROY && !error; what++) {
        if (what > CREATE && what < DESTROY && !p->connected)
            continue;
        const uint64_t begin = miba_now();
        for (unsigned i = 0; i < n && !error; i++)
            error = step(p, what, i);
        ns[figure++] = (double)(miba_now() - begin);
    }
    for (unsigned i = 0; i < n; i++)
        if (p->qp[i])
            step(p, DESTROY, i);
    return error ? miba_fail_verb(&p->m->why, error, verbs[what - 1], of[what - 1]) : MIBA_OK;
}

static enum miba_status measure_pairs(struct miba *m, const struct miba_case *c, bool connected,
                                      const char *const figures[], unsigned n_figures)
{
    struct pairs *p = calloc(1, sizeof *p);

    if (!p)
        return miba_fail(&m->why, MIBA_BROKEN, "no memory");
    *p = (struct pairs){.m = m, .entries = (uint32_t)c->x, .connected = connected};
    enum miba_status status;
    const unsigned most = m->dev.attr.max_qp < 512 ? (unsigned)m->dev.attr.max_qp / 2 : MOST_PAIRS;
    const struct measure what = {.run = batch, .arg = p, .figures = n_figures, .most = most ? most : 1, .scale = 1};
    if (c->x == 0 || c->x > (uint64_t)m->dev.attr.max_qp_wr) {
        status = miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu entries: the device's queues have 1 to %d",
                           (unsigned long long)c->x, m->dev.attr.max_qp_wr);
    } else {
        p->cq = ibv_create_cq(m->dev.ctx, 1, NULL, NULL, 0);
        status =
            p->cq ? measure_and_report(m, c, &what, figures) : miba_fail_verb(&m->why, errno, "ibv_create_cq", NULL);
    }
    if (p->cq)
        ibv_destroy_cq(p->cq);
    free(p);
    return status;
}

static enum miba_status unconnected(struct miba *m, const struct miba_case *c)
{
    static const char *const figures[] = {"qp_create", "qp_destroy"};

    return measure_pairs(m, c, false, figures, 2);
}

static enum miba_status connected(struct miba *m, const struct miba_case *c)
{
    static const char *const figures[] = {"qp_create", "qp_to_init", "qp_to_rtr", "qp_to_rts", "qp_destroy"};

    return measure_pairs(m, c, true, figures, 5);
}

static const uint64_t entries[] = {1, 16, 64, 256, 1024, 4096, 16384};

const struct miba_test test_qp = {
    .name = "qp",
    .paper = "Figure 4",
    .isolates = "Creating and destroying a queue pair that is never connected, by the entries of its send and its "
                "receive queue: "
                "what grows with them is the memory that driver and device set up for the queues.",
    .x_name = "entries",
    VALUES(entries),
    .local = unconnected,
};

const struct miba_test test_qp_connected = {
    .name = "qp_connected",
    .paper = "Table 1",
    .isolates =
        "Setting up a reliable connection (qp_to_init, qp_to_rtr, qp_to_rts) and tearing it down (qp_destroy of a "
        "connected "
        "pair). Each pair is connected to itself, so that no other side takes part. What qp_destroy is more than in "
        "the test qp is the connection's.",
    .x_name = "entries",
    VALUES(entries),
    .local = connected,
};
