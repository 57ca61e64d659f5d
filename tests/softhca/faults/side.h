/* What programs that test softhca between processes share: one queue pair of each, connected by addresses that they
 * tell each other. Included by one file of a program. */
#ifndef TESTS_SOFTHCA_SIDE_H
#define TESTS_SOFTHCA_SIDE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096u

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s: line %d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno));                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct address {
    uint32_t qpn, rkey;
    uint16_t lid;
};
struct side {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct address address;
};

static char *memory; /* at the same place in all processes */

/* cq: of another side, to be used by this one, too; NULL: it gets a device and a queue of its own. */
static inline void make(struct side *s, struct ibv_cq *cq)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = cq ? cq->context : list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
    struct ibv_port_attr port;

    NEED(pd && ibv_query_port(c, 1, &port) == 0);
    ibv_free_device_list(list);
    NEED(s->mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    NEED(s->cq = cq ? cq : ibv_create_cq(c, 16, NULL, NULL, 0));
    struct ibv_qp_init_attr init = {.send_cq = s->cq,
                                    .recv_cq = s->cq,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    NEED(s->qp = ibv_create_qp(pd, &init));
    s->address = (struct address){s->qp->qp_num, s->mr->rkey, port.lid};
}

static inline void join(struct side *s, const struct address *to)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    NEED(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = to->qpn,
                             .ah_attr = {.dlid = to->lid, .port_num = 1},
                             .min_rnr_timer = 1};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 3, .rnr_retry = 7};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

#endif
