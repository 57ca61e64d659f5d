/* What both sides of a fuzzing run do with verbs. Nothing here has to succeed: calls may fail, and the caller goes on.
 */
#define _GNU_SOURCE 1
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

bool side_open(struct side *s)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    memset(s, 0, sizeof *s);
    if (!list || !list[0])
        return false;
    s->ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (s->ctx)
        s->pd = ibv_alloc_pd(s->ctx);
    return s->ctx && s->pd && ibv_query_port(s->ctx, 1, &s->port) == 0;
}

char *file_memory(void)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* stays open, for softhca to find */
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, FUZZ_MEMORY) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        at = mmap(NULL, FUZZ_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type, struct ibv_cq *send, struct ibv_cq *recv,
                       struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {.send_cq = send,
                                    .recv_cq = recv,
                                    .srq = srq,
                                    .cap = {.max_send_wr = 32,
                                            .max_recv_wr = srq ? 0 : 32,
                                            .max_send_sge = 3,
                                            .max_recv_sge = 3,
                                            .max_inline_data = 128},
                                    .qp_type = type};

    return ibv_create_qp(s->pd, &init);
}

bool connect_qp(struct side *s, struct ibv_qp *qp, const struct end_info *to)
{
    bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;
    unsigned access = IBV_ACCESS_REMOTE_WRITE | (rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0u);
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = FUZZ_QKEY, .qp_access_flags = ud ? 0 : access};

    if (ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) != 0)
        return false;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = s->port.active_mtu,
                             .dest_qp_num = to->qpn,
                             .ah_attr = {.dlid = to->lid, .port_num = 1},
                             .max_dest_rd_atomic = 4,
                             .min_rnr_timer = 10};
    if (ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
                          (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) != 0)
        return false;
    /* 65 us, twice: what is lost is to be over soon. */
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 4, .retry_cnt = 2, .rnr_retry = 6, .max_rd_atomic = 4};
    return ibv_modify_qp(
               qp, &a,
               IBV_QP_STATE | IBV_QP_SQ_PSN |
                   (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0;
}

static size_t fill_list(struct ibv_sge *sge, int n, const struct ibv_mr *mr, struct rng *r)
{
    static const uint32_t sizes[] = {0, 1, 8, 64, 500, 4096, 9000};
    size_t sum = 0;

    for (int i = 0; i < n; i++) {
        uint32_t length = sizes[rng_below(r, 7)];
        sge[i] = (struct ibv_sge){(uintptr_t)mr->addr + rng_below(r, FUZZ_MEMORY - 9000), length, mr->lkey};
        sum += length;
    }
    return sum;
}

void post_random(struct ibv_qp *qp, struct ibv_mr *mr, const struct end_info *to, struct ibv_ah *ah,
                 struct requests *keep, struct rng *r)
{
    static const enum ibv_wr_opcode op[] = {
        IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,          IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct ibv_sge sge[3];
    int n = 1 + (int)rng_below(r, 3);
    size_t length = fill_list(sge, n, mr, r);
    struct ibv_send_wr wr = {.wr_id = rng_next(r), .sg_list = sge, .num_sge = n, .opcode = op[rng_below(r, 7)]}, *bad;
    uint64_t at = to->addr + rng_below(r, FUZZ_MEMORY / 16) * 8;

    if (!rng_below(r, 3))
        wr.send_flags = IBV_SEND_SIGNALED;
    if (!rng_below(r, 4))
        wr.send_flags |= IBV_SEND_SOLICITED;
    if (length <= 128 && wr.opcode < IBV_WR_RDMA_READ && rng_below(r, 2))
        wr.send_flags |= IBV_SEND_INLINE;
    if (qp->qp_type == IBV_QPT_UD) {
        if (!ah)
            return;
        wr.opcode = op[rng_below(r, 2)];
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = to->qpn;
        wr.wr.ud.remote_qkey = FUZZ_QKEY;
    } else if (wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        sge[0].length = 8;
        wr.num_sge = 1;
        wr.wr.atomic.remote_addr = at;
        wr.wr.atomic.rkey = to->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = at;
        wr.wr.rdma.rkey = to->rkey;
    }
    if (keep)
        wr.wr_id = request_add(keep, false, 0);
    if (ibv_post_send(qp, &wr, &bad) != 0 && keep)
        request_not_posted(keep, wr.wr_id);
}

static uint64_t room_of(const struct ibv_recv_wr *wr)
{
    uint64_t room = 0;

    for (int i = 0; i < wr->num_sge; i++)
        room += wr->sg_list[i].length;
    return room;
}

void post_receive(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_mr *mr, struct requests *keep, struct rng *r)
{
    struct ibv_sge sge[3];
    struct ibv_recv_wr wr = {.wr_id = rng_next(r), .sg_list = sge, .num_sge = 1 + (int)rng_below(r, 3)}, *bad;

    (void)fill_list(sge, wr.num_sge, mr, r);
    /* Mostly enough for whatever is sent. */
    if (rng_below(r, 32))
        sge[0] = (struct ibv_sge){(uintptr_t)mr->addr, FUZZ_MEMORY, mr->lkey};
    if (keep)
        wr.wr_id = request_add(keep, true, room_of(&wr));
    if ((srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)) != 0 && keep)
        request_not_posted(keep, wr.wr_id);
}

/* ---- proof of health ---- */

static bool completes(struct ibv_cq *cq, unsigned n)
{
    struct timespec begin, now;
    struct ibv_wc wc;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (n > 0) {
        int got = ibv_poll_cq(cq, 1, &wc);
        if (got < 0 || (got > 0 && wc.status != IBV_WC_SUCCESS)) {
            fprintf(stderr, "a message to itself: %s\n", got < 0 ? "overrun" : ibv_wc_status_str(wc.status));
            return false;
        }
        n -= (unsigned)got;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > 120) {
            fprintf(stderr, "a message to itself does not arrive\n");
            return false;
        }
    }
    return true;
}

static bool exchange(struct side *s, struct ibv_qp *a, struct ibv_qp *b, struct ibv_mr *mr)
{
    struct end_info to_a = {.qpn = a->qp_num, .lid = s->port.lid}, to_b = {.qpn = b->qp_num, .lid = s->port.lid};
    char *data = mr->addr;
    struct ibv_sge from = {(uintptr_t)data, 64, mr->lkey}, into = {(uintptr_t)data + 64, 64, mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &into, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.wr_id = 2,
                               .sg_list = &from,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;

    memset(data, 0x5a, 64);
    memset(data + 64, 0, 64);
    return connect_qp(s, a, &to_b) && connect_qp(s, b, &to_a) && ibv_post_recv(b, &recv, &bad_recv) == 0 &&
           ibv_post_send(a, &send, &bad_send) == 0 && completes(a->send_cq, 2) && memcmp(data, data + 64, 64) == 0;
}

bool works_with_itself(struct side *s)
{
    char *data = calloc(1, 4096);
    struct ibv_mr *mr = data ? ibv_reg_mr(s->pd, data, 4096, IBV_ACCESS_LOCAL_WRITE) : NULL;
    struct ibv_cq *cq = mr ? ibv_create_cq(s->ctx, 16, NULL, NULL, 0) : NULL;
    struct ibv_qp *a = cq ? make_qp(s, IBV_QPT_RC, cq, cq, NULL) : NULL;
    struct ibv_qp *b = a ? make_qp(s, IBV_QPT_RC, cq, cq, NULL) : NULL;
    bool works = b && exchange(s, a, b, mr);

    if (b)
        (void)ibv_destroy_qp(b);
    if (a)
        (void)ibv_destroy_qp(a);
    if (cq)
        (void)ibv_destroy_cq(cq);
    if (mr)
        (void)ibv_dereg_mr(mr);
    free(data);
    return works;
}
