/* Two modules for ring_test and ring_grant_test, and verbs that are made up between them: a post is carried out at
 * once, and its completion waits to be polled. */
#ifndef RING_SIDES_H
#define RING_SIDES_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "data/completion.h"
#include "data/credits.h"
#include "data/send.h"
#include "module.h"
#include "support/holds.h"

enum { SIZE = 2048, DEPTH = 128, CREDITS = 64, INLINE = 256, SLOTS = 20, SLOT = 128, SPAN = 8, ARRIVALS = 1024 };

/* Completions: messages by send and receive, and ends of sends. */
struct arrivals {
    struct ib_buffer buffer[ARRIVALS];
    char data[ARRIVALS][SIZE];
    struct ibv_wc wc[ARRIVALS];
    uint32_t made, polled;
};
struct client {
    struct side *side;
    enum st_am am;
};
static struct side {
    struct ib_module m;
    struct client clients[ST_AM_COUNT];
    struct ib_peer *p;
    struct arrivals in;
    struct ib_buffer out[DEPTH];
    char out_data[DEPTH][SIZE];
    struct ibv_context device;
    struct ibv_cq cq[IB_PRIORITIES];
    struct ibv_srq srq;
    struct ibv_qp qp[IB_PRIORITIES];
    struct ibv_mr mr;
    struct st_rte rte;
    struct st_rcache cache;
    char ring[(SLOTS + SPAN - 1) * SLOT] __attribute__((aligned(64))), staging[(SLOTS + SPAN - 1) * SLOT];
    uint32_t got; /* messages */
    bool answers; /* from within its deliver */
    bool looks;   /* there polls for completions of sends, as a send without room does */
    uint32_t answered;
} side[2];
static struct ib_params params;
static struct ib_queue_spec spec;
static uint32_t seed, refuse; /* of the next posts, one of so many is refused; 0: none */
static uint32_t odd_clients;  /* of nine messages so many are not the PML's */
static bool beside;           /* messages go by send and receive */

static uint32_t any(uint32_t n)
{
    return (seed = seed * 1664525 + 1013904223) / 7 % n;
}

static void arrive(struct side *to, struct ibv_wc wc, const void *data, uint32_t len)
{
    uint32_t i = to->in.made++ % ARRIVALS;

    HOLDS(to->in.made - to->in.polled <= ARRIVALS);
    HOLDS(len <= SIZE);
    if (data) {
        to->in.buffer[i].data = to->in.data[i];
        memcpy(to->in.data[i], data, len);
        wc.wr_id = (uintptr_t)&to->in.buffer[i];
        wc.byte_len = len;
    }
    to->in.wc[i] = wc;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct side *from = qp == &side[0].qp[IB_HIGH] ? &side[0] : &side[1], *to = &side[from == side];
    const struct ib_qp *q = &from->p->q[IB_HIGH];

    HOLDS(qp == &from->qp[IB_HIGH]);
    for (; wr; wr = wr->next) {
        const void *data = (const void *)(uintptr_t)wr->sg_list[0].addr;
        *bad = wr;
        if (refuse && any(refuse) == 0)
            return ENOMEM;
        HOLDS(q->posted - q->done <= DEPTH);
        HOLDS(wr->sg_list[0].length <= INLINE || !(wr->send_flags & IBV_SEND_INLINE));
        if (wr->opcode != IBV_WR_SEND) {
            HOLDS(wr->wr.rdma.remote_addr >= (uintptr_t)to->ring);
            HOLDS(wr->wr.rdma.remote_addr + wr->sg_list[0].length <= (uintptr_t)to->ring + sizeof to->ring);
            memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr, data, wr->sg_list[0].length);
        }
        if (wr->opcode != IBV_WR_RDMA_WRITE) {
            bool imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
            arrive(to,
                   (struct ibv_wc){.qp_num = to->qp[IB_HIGH].qp_num,
                                   .opcode = imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                                   .wc_flags = imm ? IBV_WC_WITH_IMM : 0,
                                   .imm_data = wr->imm_data},
                   data, imm ? 0 : wr->sg_list[0].length);
        }
        if (wr->send_flags & IBV_SEND_SIGNALED)
            arrive(from, (struct ibv_wc){.wr_id = wr->wr_id, .qp_num = qp->qp_num}, NULL, 0);
    }
    return 0;
}

static int poll_cq(struct ibv_cq *from, int most, struct ibv_wc *wc)
{
    struct side *s = from == &side[0].cq[IB_HIGH] ? &side[0] : &side[1];
    int n = 0;

    for (; from == &s->cq[IB_HIGH] && n < most && s->in.polled != s->in.made; n++)
        wc[n] = s->in.wc[s->in.polled++ % ARRIVALS];
    return n;
}

static int post_srq_recv(struct ibv_srq *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)to, (void)wr, (void)bad;
    return 0;
}

static void apply_nothing(struct st_rcache *cache)
{
    (void)cache;
}

#endif
