/* Two modules of btl_tcp with registered memory that each may put to and get from. */
#ifndef RDMA_RIG_H
#define RDMA_RIG_H

#include <strata/sdk/btl_rdma.h>
#include "rdma.h"
#include "support/pattern.h"
#include "tcp_rig.h"

enum { NOTICE = 0x1234567 };

struct op {
    struct st_btl_op op;
    int calls, rc;
};

static char *memory[2]; /* of rank 0 and 1: area bytes, with the pattern of the rank's number */
static struct st_btl_reg reg[2];
static size_t area;
static unsigned noticed;

static void done(struct st_btl_op *o, int rc)
{
    struct op *op = ST_CONTAINER(o, struct op, op);

    op->calls++;
    op->rc = rc;
}

static void take_notice(void *arg, const struct st_frag *frag)
{
    uint32_t word;

    (void)arg;
    ck_assert_uint_eq(frag->hdr_len, 4);
    memcpy(&word, frag->hdr, 4);
    ck_assert_uint_eq(word, NOTICE);
    noticed++;
}

static void rdma_setup(size_t bytes)
{
    memset(rig_card, 0, sizeof rig_card);
    rig_mends = true;
    noticed = 0;
    area = bytes;
    for (int i = 0; i < 2; i++) {
        rig_open(i);
        rig[i].m->btl.am[ST_AM_NOTICE].fn = take_notice;
        memory[i] = calloc(1, area);
        pattern_fill(memory[i], area, (uint64_t)i);
        ck_assert_int_eq(tcp_reg(&rig[i].m->btl, memory[i], area, ST_BTL_ANY_USE, &reg[i]), STRATA_OK);
    }
}

static void rdma_teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        rig_close(i);
    free(memory[0]);
    free(memory[1]);
}

static struct tcp_peer *peer_of(int rank, int peer)
{
    return st_rank_table_get(&rig[rank].m->peers, (uint32_t)peer);
}

/* Rank 0 dials. */
static struct st_btl_endpoint *link_both(void)
{
    struct st_btl_endpoint *ep = rig_connect(0, 1);

    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1, rig_poll());
    return ep;
}

/* To or from the memory of ep's rank, `at` bytes behind its beginning. */
static int begin(struct st_btl_endpoint *ep, bool get, char *local, size_t at, size_t len, struct op *op)
{
    uint64_t remote = (uint64_t)(uintptr_t)(memory[ep->rank] + at);

    *op = (struct op){.op.done = done};
    return get ? tcp_rdma_ops.get(ep, local, remote, reg[ep->rank].key, len, NULL, &op->op)
               : tcp_rdma_ops.put(ep, local, remote, reg[ep->rank].key, len, NULL, &op->op);
}

#endif
