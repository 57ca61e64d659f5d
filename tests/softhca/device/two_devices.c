/* Two devices in one process, of two kinds if there are (`two_devices soft0 rxe0`): both are listed, messages go over
 * both at the same time with events of both waited for at once, and objects of the one are refused by the other, with
 * EINVAL, as the kernel does between two of its own. Run it with libsofthca preloaded. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 200u
#define SIZE     2048u

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "two_devices: line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
/* A call that returns a pointer, and must not. */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        NEED((call) == NULL && errno == EINVAL);                                                                       \
    } while (0)

struct device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct ibv_qp *from, *to, *datagrams;
    struct ibv_ah *ah;
    struct ibv_ah_attr self;
    char memory[2 * SIZE];
    unsigned received;
};

static struct ibv_context *open_named(const char *name)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *ctx = NULL;

    NEED(list);
    for (int i = 0; i < n; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            ctx = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    return ctx;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv, struct ibv_srq *srq,
                              enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send,
        .recv_cq = recv,
        .srq = srq,
        .cap = {.max_send_wr = 8, .max_recv_wr = srq ? 0 : 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type};

    return ibv_create_qp(pd, &init);
}

static void join(struct device *d, struct ibv_qp *qp, uint32_t qpn)
{
    bool ud = qp->qp_type == IBV_QPT_UD;
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1, .qp_access_flags = ud ? 0 : IBV_ACCESS_REMOTE_WRITE};

    NEED(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = qpn,
                             .ah_attr = d->self,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12};
    NEED(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | (ud ? 0
                                          : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) == 0);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 17, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1};
    NEED(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN |
                           (ud ? 0 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)) ==
         0);
}

static void make(struct device *d, const char *name)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_port_attr port;

    NEED(d->ctx = open_named(name));
    NEED(ibv_query_port(d->ctx, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE);
    d->self = (struct ibv_ah_attr){.dlid = port.lid, .port_num = 1};
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        d->self.is_global = 1;
        d->self.grh.sgid_index = 1;
        d->self.grh.hop_limit = 1;
        NEED(ibv_query_gid(d->ctx, 1, 1, &d->self.grh.dgid) == 0);
    }
    NEED(d->pd = ibv_alloc_pd(d->ctx));
    NEED(d->channel = ibv_create_comp_channel(d->ctx));
    NEED(d->cq = ibv_create_cq(d->ctx, 64, d, d->channel, 0));
    NEED(d->srq = ibv_create_srq(d->pd, &srq));
    NEED(d->mr = ibv_reg_mr(d->pd, d->memory, sizeof d->memory, IBV_ACCESS_LOCAL_WRITE));
    NEED(d->from = make_qp(d->pd, d->cq, d->cq, NULL, IBV_QPT_RC));
    NEED(d->to = make_qp(d->pd, d->cq, d->cq, d->srq, IBV_QPT_RC));
    NEED(d->datagrams = make_qp(d->pd, d->cq, d->cq, NULL, IBV_QPT_UD));
    NEED(d->ah = ibv_create_ah(d->pd, &d->self));
    join(d, d->from, d->to->qp_num);
    join(d, d->to, d->from->qp_num);
    join(d, d->datagrams, 0);
}

/* ---- messages over both ---- */

static void next_message(struct device *d)
{
    struct ibv_sge from = {(uintptr_t)d->memory, SIZE, d->mr->lkey},
                   into = {(uintptr_t)d->memory + SIZE, SIZE, d->mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = d->received, .sg_list = &into, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.wr_id = d->received,
                               .sg_list = &from,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;

    memset(d->memory, (int)(d->received + 1), SIZE);
    NEED(ibv_post_srq_recv(d->srq, &recv, &bad_recv) == 0 && ibv_post_send(d->from, &send, &bad_send) == 0);
}

static void completed(struct device *d, const struct ibv_wc *wc)
{
    NEED(wc->status == IBV_WC_SUCCESS);
    if (wc->opcode != IBV_WC_RECV)
        return;
    NEED(wc->wr_id == d->received && wc->qp_num == d->to->qp_num && wc->byte_len == SIZE &&
         memcmp(d->memory, d->memory + SIZE, SIZE) == 0);
    d->received++;
}

/* An event of this device: everything that is there is polled. */
static void look(struct device *d, unsigned *left)
{
    unsigned before = d->received;
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *user;
    int got;

    NEED(ibv_get_cq_event(d->channel, &cq, &user) == 0 && cq == d->cq && user == d);
    ibv_ack_cq_events(cq, 1);
    NEED(ibv_req_notify_cq(cq, 0) == 0);
    while ((got = ibv_poll_cq(cq, 1, &wc)) > 0)
        completed(d, &wc);
    NEED(got == 0);
    if (d->received == before)
        return;
    *left -= 1;
    if (d->received < MESSAGES)
        next_message(d);
}

static void exchange(struct device d[2])
{
    unsigned left = 2 * MESSAGES;
    struct pollfd f[2];

    for (int i = 0; i < 2; i++) {
        f[i] = (struct pollfd){.fd = d[i].channel->fd, .events = POLLIN};
        NEED(ibv_req_notify_cq(d[i].cq, 0) == 0);
        next_message(&d[i]);
    }
    while (left > 0) {
        NEED(poll(f, 2, 240000) > 0);
        for (int i = 0; i < 2; i++)
            if (f[i].revents)
                look(&d[i], &left);
    }
}

/* ---- what belongs to different devices ---- */

static void refuse(struct device *a, struct device *b)
{
    struct ibv_sge sge = {(uintptr_t)a->memory, 8, a->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .wr.ud = {.ah = b->ah, .remote_qpn = a->datagrams->qp_num, .remote_qkey = 1}},
                       *bad = NULL;
    bool soft = strncmp(ibv_get_device_name(a->ctx->device), "soft", 4) == 0;

    REFUSED(make_qp(a->pd, b->cq, a->cq, NULL, IBV_QPT_RC));
    REFUSED(make_qp(a->pd, a->cq, b->cq, NULL, IBV_QPT_RC));
    REFUSED(make_qp(a->pd, a->cq, a->cq, b->srq, IBV_QPT_RC));
    REFUSED(make_qp(b->pd, a->cq, a->cq, NULL, IBV_QPT_UD));
    REFUSED(ibv_create_cq(a->ctx, 8, NULL, b->channel, 0));
    NEED(ibv_rereg_mr(a->mr, IBV_REREG_MR_CHANGE_PD, b->pd, NULL, 0, 0) != 0);
    /* A real device's posting is its provider's alone. */
    if (soft)
        NEED(ibv_post_send(a->datagrams, &wr, &bad) == EINVAL && bad == &wr);
}

static void destroy(struct device *d)
{
    NEED(ibv_destroy_qp(d->from) == 0 && ibv_destroy_qp(d->to) == 0 && ibv_destroy_qp(d->datagrams) == 0);
    NEED(ibv_destroy_srq(d->srq) == 0 && ibv_destroy_cq(d->cq) == 0 && ibv_destroy_comp_channel(d->channel) == 0);
    NEED(ibv_destroy_ah(d->ah) == 0 && ibv_dereg_mr(d->mr) == 0 && ibv_dealloc_pd(d->pd) == 0);
    NEED(ibv_close_device(d->ctx) == 0);
}

int main(int argc, char **argv)
{
    static struct device d[2];

    if (argc != 3) {
        fprintf(stderr, "usage: two_devices NAME NAME\n");
        return 2;
    }
    for (int i = 0; i < 2; i++)
        make(&d[i], argv[i + 1]);
    exchange(d);
    refuse(&d[0], &d[1]);
    refuse(&d[1], &d[0]);
    for (int i = 0; i < 2; i++) /* and nothing is the worse for it */
        d[i].received = 0;
    exchange(d);
    for (int i = 0; i < 2; i++)
        destroy(&d[i]);
    printf("%s and %s: %u messages each, and what is mixed is refused\n", argv[1], argv[2], 2 * MESSAGES);
    return 0;
}
