/* Whether the device's RDMA write beats its send, of 64 bytes: measured between two queue pairs of this module that are
 * connected to each other, as `auto` wants to know at the first hot peer. Takes well below a millisecond, and a few
 * at most where the device is slow. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include "module.h"

#define TRIAL_DEPTH  8u
#define TRIAL_BYTES  64u
#define TRIAL_TURNS  41       /* of each kind, in turn */
#define TRIAL_LIMIT  2000000u /* ns for one operation: as slow as that is no sample */
#define TRIAL_GAIN   15u      /* percent: the writes are to be that much faster, as rings have a cost of their own */
#define TRIAL_TARGET 4096u    /* offset of what is written and received; before it lies what is sent */

struct trial {
    struct ibv_cq *cq;
    struct ibv_qp *qp[2]; /* the first one sends to the second */
    struct ib_ring_memory memory;
    uint32_t inlined; /* send_flags */
};

static struct ibv_qp *trial_qp(struct ib_module *m, struct ibv_cq *cq, uint32_t inlined)
{
    struct ibv_qp_init_attr a = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {TRIAL_DEPTH, TRIAL_DEPTH, 1, 1, inlined}};

    return ibv_create_qp(m->dev.pd, &a);
}

static bool trial_connect(struct ib_module *m, struct ibv_qp *qp, const struct ibv_qp *other)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = (uint16_t)m->dev.par->pkey_index,
                               .port_num = m->dev.port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = m->dev.mtu,
                              .dest_qp_num = other->qp_num,
                              .min_rnr_timer = 1,
                              .ah_attr = ib_device_path(&m->dev, m->dev.gid.raw, m->dev.port_attr.lid)};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = (uint8_t)m->dev.par->timeout,
                              .retry_cnt = (uint8_t)m->dev.par->retry_count,
                              .rnr_retry = 7};

    return ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0 &&
           ibv_modify_qp(qp, &rtr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0 &&
           ibv_modify_qp(qp, &rts,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

static void trial_end(struct ib_module *m, struct trial *t)
{
    for (int i = 0; i < 2; i++)
        if (t->qp[i])
            (void)ibv_destroy_qp(t->qp[i]);
    if (t->cq)
        (void)ibv_destroy_cq(t->cq);
    ib_ring_memory_put(m, &t->memory);
}

static bool trial_begin(struct ib_module *m, struct trial *t)
{
    uint32_t inlined = m->brief.most >= TRIAL_BYTES ? TRIAL_BYTES : 0;

    *t = (struct trial){.inlined = inlined ? IBV_SEND_INLINE : 0};
    t->cq = ibv_create_cq(m->dev.verbs, 4 * (int)TRIAL_DEPTH, NULL, NULL, 0);
    for (int i = 0; i < 2 && t->cq; i++)
        t->qp[i] = trial_qp(m, t->cq, inlined);
    if (t->qp[0] && t->qp[1] && trial_connect(m, t->qp[0], t->qp[1]) && trial_connect(m, t->qp[1], t->qp[0]) &&
        ib_ring_memory_get(m, 2 * (size_t)TRIAL_TARGET, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &t->memory) ==
            STRATA_OK) {
        memset(t->memory.piece.memory, 0, 2 * (size_t)TRIAL_TARGET);
        return true;
    }
    trial_end(m, t);
    return false;
}

/* Completions, one or two; false: there was an error, or not so many in time. */
static bool trial_take(struct trial *t, int n, uint64_t until)
{
    struct ibv_wc wc;

    while (n > 0) {
        int got = ibv_poll_cq(t->cq, 1, &wc);
        if (got < 0 || (got > 0 && wc.status != IBV_WC_SUCCESS) || (got == 0 && st_now_ns() > until))
            return false;
        n -= got;
    }
    return true;
}

/* One operation until the receiver has seen it, ns; 0: it failed. All that was posted has ended then. */
static uint64_t trial_turn(struct trial *t, bool write, uint8_t value)
{
    char *from = t->memory.piece.memory, *to = from + TRIAL_TARGET;
    struct ibv_sge sge = {(uintptr_t)from, TRIAL_BYTES, t->memory.mr->lkey},
                   in = {(uintptr_t)to, TRIAL_BYTES, t->memory.mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &in, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
                                   .send_flags = t->inlined | IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)to, t->memory.mr->rkey}};
    const _Atomic(uint8_t) *last = (const _Atomic(uint8_t) *)(const void *)(to + TRIAL_BYTES - 1);
    uint64_t begin, took, until;

    from[TRIAL_BYTES - 1] = (char)value;
    begin = st_now_ns();
    until = begin + TRIAL_LIMIT;
    if ((!write && ibv_post_recv(t->qp[1], &receive, &bad_receive) != 0) || ibv_post_send(t->qp[0], &wr, &bad) != 0)
        return 0;
    while (write && atomic_load_explicit(last, memory_order_acquire) != value)
        if (st_now_ns() > until)
            return 0;
    took = st_now_ns() - begin;
    if (!trial_take(t, write ? 1 : 2, until)) /* the send's own completion may come after the receive's */
        return 0;
    if (!write)
        took = st_now_ns() - begin;
    return took ? took : 1;
}

static int trial_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

bool ib_eager_trial(struct ib_module *m)
{
    uint64_t ns[2][TRIAL_TURNS] = {{0}};
    struct trial t;
    bool worth = false, whole = trial_begin(m, &t);

    if (!whole) {
        st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: no queue pairs to try RDMA writes: no rings",
               m->dev.name);
        return false;
    }
    for (int i = 0; i < TRIAL_TURNS && whole; i++)
        for (int write = 0; write < 2 && whole; write++) {
            ns[write][i] = trial_turn(&t, write, (uint8_t)(i + 1));
            whole = ns[write][i] != 0;
        }
    if (whole) {
        for (int write = 0; write < 2; write++)
            qsort(ns[write], TRIAL_TURNS, sizeof ns[write][0], trial_by_value);
        worth = ns[1][TRIAL_TURNS / 2] * 100 <= ns[0][TRIAL_TURNS / 2] * (100 - TRIAL_GAIN);
    }
    st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: a write takes %lu ns, a send %lu ns: %s", m->dev.name,
           (unsigned long)ns[1][TRIAL_TURNS / 2], (unsigned long)ns[0][TRIAL_TURNS / 2],
           worth ? "hot peers get rings of eager RDMA" : "no rings of eager RDMA");
    trial_end(m, &t);
    return worth;
}
