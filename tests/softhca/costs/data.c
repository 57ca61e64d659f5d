/* Costs of messages: each is spent as often as its README says, once for a message, before that arrives. A program of
 * the verbs suite, for softhca alone; costs_test.sh runs it, with memory of both kinds. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"
#include "counts.h"

#include <pthread.h>

#define OF_MESSAGES "segment=10ns,max_sge=1ns,packet=10ns,byte=1ps"
#define PAGE        4096u

/* The list in `n` parts; what is behind the parts of one byte is the last. */
static void split(struct op *op, uint32_t n)
{
    const struct ibv_sge whole = op->sge[0];

    for (uint32_t i = 0; i < n; i++)
        op->sge[i] = (struct ibv_sge){whole.addr + i, i + 1 < n ? 1 : whole.length - i, whole.lkey};
    op->wr.num_sge = (int)n;
}

/* From a to b, polled; a receive for what takes one. */
static void carry(struct pair *p, struct op *op, size_t length)
{
    const bool taken = op->wr.opcode == IBV_WR_SEND || op->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

    if (taken)
        recv_post(&p->b, 1, 0, length + 64);
    op_post(&p->a, op);
    cq_expect(p->a.send_cq, op->wr.wr_id, IBV_WC_SUCCESS);
    if (taken)
        cq_expect(p->b.recv_cq, 1, IBV_WC_SUCCESS);
}

static void sends(enum ibv_qp_type type)
{
    struct pair p;

    costs_set(OF_MESSAGES);
    PAIR(&p, .type = type, .send_sge = 6, .inline_size = 128);
    const size_t mtu = device_mtu(&p.dev), lengths[] = {0, 1, 64, mtu, mtu + 1, 3 * mtu};
    const uint64_t packets[] = {1, 1, 1, 1, 2, 3};
    struct counts c = counts_now();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, lengths[i]);
        carry(&p, &op, lengths[i]);
        COUNTED(&c, {HCA_COST_PACKET, packets[i]}, {HCA_COST_BYTE, lengths[i]}, {HCA_COST_MAX_SGE, 6});
    }
    for (uint32_t n = 1; n <= 6; n++) {
        for (int is_inline = 0; is_inline < 2; is_inline++) {
            struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 100);
            split(&op, n);
            op.wr.send_flags |= is_inline ? IBV_SEND_INLINE : 0u;
            carry(&p, &op, 100);
            COUNTED(&c, {HCA_COST_PACKET, 1}, {HCA_COST_BYTE, 100}, {HCA_COST_MAX_SGE, 6}, {HCA_COST_SEGMENT, n - 1});
        }
    }
    pair_close(&p);
}

static void sends_rc(void)
{
    sends(IBV_QPT_RC);
}

static void sends_uc(void)
{
    sends(IBV_QPT_UC);
}

static void datagrams(void)
{
    struct pair p;

    costs_set(OF_MESSAGES);
    PAIR(&p, .type = IBV_QPT_UD, .send_sge = 2);
    const size_t mtu = device_mtu(&p.dev);
    const struct end_address to = end_address(&p.b);
    struct ibv_ah *ah = end_ah(&p.a, &to);
    struct counts c = counts_now();
    for (int i = 0; i < 2; i++) {
        const size_t length = i ? mtu : 16;
        struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, length);
        op_to_ud(&op, ah, to.qpn);
        carry(&p, &op, length);
        COUNTED(&c, {HCA_COST_PACKET, 1}, {HCA_COST_BYTE, length}, {HCA_COST_MAX_SGE, 2});
    }
    REQUIRE_OK(ibv_destroy_ah(ah));
    pair_close(&p);
}

/* RDMA writes, by stores where the memory allows that, reads and atomic operations. */
static void remote(void)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
    struct pair p;

    costs_set(OF_MESSAGES);
    PAIR(&p, .type = IBV_QPT_RC, .send_sge = 3);
    const struct end_address to = end_address(&p.b);
    const size_t mtu = device_mtu(&p.dev), lengths[] = {8, mtu, 4 * mtu + 1};
    const uint64_t packets[] = {1, 1, 5};
    struct counts c = counts_now();
    for (size_t o = 0; o < 3; o++) {
        for (size_t i = 0; i < 3; i++) {
            struct op op = op_rdma(&p.a, opcodes[o], 1, 0, lengths[i], &to, 4096);
            split(&op, 2);
            carry(&p, &op, lengths[i]);
            COUNTED(&c, {HCA_COST_PACKET, packets[i]}, {HCA_COST_BYTE, lengths[i]}, {HCA_COST_MAX_SGE, 3},
                    {HCA_COST_SEGMENT, 1});
        }
    }
    for (int i = 0; i < 2; i++) {
        struct op op =
            op_atomic(&p.a, i ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &to, 64, 1, 1);
        carry(&p, &op, 8);
        COUNTED(&c, {HCA_COST_PACKET, 1}, {HCA_COST_BYTE, 8}, {HCA_COST_MAX_SGE, 3});
    }
    pair_close(&p);
}

/* A cache of four pages: which one goes, what is beside each other, what is registered again. */
static void translations(void)
{
    static const struct {
        size_t at, length;
        uint64_t cold;
    } steps[] = {
        {0, 64, 1},
        {PAGE, 64, 1},
        {2 * PAGE, 64, 1},
        {3 * PAGE, 64, 1},
        {0, 64, 0},
        {100, 64, 0},
        {3 * PAGE, 64, 0},
        {4 * PAGE, 64, 1}, /* 1 goes */
        {0, 64, 0},
        {PAGE, 64, 1}, /* 2 goes */
        {3 * PAGE, 64, 0},
        {2 * PAGE, 64, 1}, /* 4 goes */
        {9 * PAGE - 8, 16, 2},
        {5 * PAGE, 3 * PAGE, 3},
        {5 * PAGE, 3 * PAGE, 0},
        {5 * PAGE, 5 * PAGE, 2},
        {5 * PAGE, 5 * PAGE, 5}, /* more than there is room for */
        {0, 0, 0},
    };
    struct pair p;

    costs_set("cold=10ns");
    REQUIRE_OK(setenv("SOFTHCA_COST_CACHE", "4", 1));
    PAIR(&p, .type = IBV_QPT_RC, .memory = 16 * PAGE, .inline_size = 64);
    const struct end_address to = end_address(&p.b);
    struct counts c = counts_now();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct op op =
            op_rdma(&p.a, i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 1, steps[i].at, steps[i].length, &to, 0);
        carry(&p, &op, steps[i].length);
        COUNTED(&c, {HCA_COST_COLD, steps[i].cold});
    }
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 12 * PAGE, 64, &to, 0);
    op.wr.send_flags |= IBV_SEND_INLINE;
    carry(&p, &op, 64);
    NOTHING_COUNTED(&c);
    op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 12 * PAGE, 64, &to, 0);
    carry(&p, &op, 64);
    split(&op, 3); /* of one page */
    carry(&p, &op, 64);
    COUNTED(&c, {HCA_COST_COLD, 1});
    struct ibv_mr *again = ibv_reg_mr(p.dev.pd, p.a.mem.p, p.a.mem.size, IBV_ACCESS_LOCAL_WRITE);
    REQUIRE(again != NULL);
    op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 12 * PAGE, 64, &to, 0);
    op.sge[0].lkey = again->lkey;
    carry(&p, &op, 64);
    COUNTED(&c, {HCA_COST_COLD, 1});
    REQUIRE_OK(ibv_dereg_mr(again));
    pair_close(&p);
}

/* A thousand pages fit where nothing is said. */
static void translations_by_default(void)
{
    struct pair p;

    costs_set("cold=0ns");
    PAIR(&p, .type = IBV_QPT_RC, .memory = 1025 * PAGE);
    const struct end_address to = end_address(&p.b);
    struct counts c = counts_now();
    for (int round = 0; round < 2; round++) {
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_READ, 1, 0, 1024 * PAGE, &to, 0);
        carry(&p, &op, 1024 * PAGE);
        COUNTED(&c, {HCA_COST_COLD, round ? 0 : 1024});
    }
    pair_close(&p);
}

/* The engine goes from one to another, and back; what comes from the same again is none. */
static void switches(void)
{
    struct pair p, q;

    costs_set("switch=10ns");
    PAIR(&p, .type = IBV_QPT_RC);
    PAIR(&q, .type = IBV_QPT_UC);
    struct counts c = counts_now();
    pair_exchange(&p, 1);
    pair_exchange(&p, 2);
    NOTHING_COUNTED(&c);
    for (uint32_t i = 0; i < 5; i++) {
        pair_exchange(&q, 3);
        pair_exchange(&q, 4);
        COUNTED(&c, {HCA_COST_SWITCH, 1});
        pair_exchange(&p, 5);
        COUNTED(&c, {HCA_COST_SWITCH, 1});
    }
    pair_close(&q);
    pair_close(&p);
}

/* A message that waits for its receive is tried again and again, and costs once. */
static void once(void)
{
    struct pair p;

    costs_set(OF_MESSAGES ",cold=10ns,engine=1");
    PAIR(&p, .type = IBV_QPT_RC, .min_rnr_timer = 1);
    struct counts c = counts_now();
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect_none(p.a.send_cq, 20);
    recv_post(&p.b, 1, 0, 64);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    COUNTED(&c, {HCA_COST_PACKET, 1}, {HCA_COST_BYTE, 64}, {HCA_COST_MAX_SGE, 4}, {HCA_COST_COLD, 1},
            {HCA_COST_ENGINE, 1});
    /* And nothing more when nothing arrives: the queue pair is in the error state. */
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_WR_FLUSH_ERR);
    NOTHING_COUNTED(&c);
    pair_close(&p);
}

/* Before it arrives: who polls its completion has waited for it. */
static void messages_take_their_time(void)
{
    struct pair p;

    costs_set("packet=1ms,byte=1us,segment=1ms,max_sge=1ms,cold=1ms,post_send=1ms");
    PAIR(&p, .type = IBV_QPT_RC, .send_sge = 2);
    for (int i = 0; i < 5; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, 1, (size_t)i * PAGE, 1000);
        split(&op, 2);
        recv_post(&p.b, 1, 0, 1000);
        const double begin = now();
        op_post(&p.a, &op);
        cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
        /* A packet, 1000 bytes, a segment, two of max_sge, a page, a post. */
        REQUIRE_MSG(now() - begin >= 0.0069, "%.6f s instead of 7 ms", now() - begin);
        cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

#define PER_THREAD 300u

static void *traffic(void *arg)
{
    struct pair *p = arg;

    for (uint32_t i = 0; i < PER_THREAD; i++) {
        struct op op = op_make(&p->a, IBV_WR_SEND, 1, (i % 16) * PAGE, 64);
        carry(p, &op, 64);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[3];
    struct pair p[3];

    costs_set(OF_MESSAGES ",cold=10ns,post=10ns,engine=1");
    REQUIRE_OK(setenv("SOFTHCA_COST_CACHE", "64", 1));
    for (int i = 0; i < 3; i++)
        PAIR(&p[i], .type = IBV_QPT_RC);
    struct counts c = counts_now();
    for (int i = 0; i < 3; i++)
        REQUIRE_OK(pthread_create(&t[i], NULL, traffic, &p[i]));
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    const uint64_t n = 3ull * PER_THREAD;
    COUNTED(&c, {HCA_COST_PACKET, n}, {HCA_COST_BYTE, 64 * n}, {HCA_COST_MAX_SGE, 4 * n}, {HCA_COST_COLD, 3 * 16},
            {HCA_COST_ENGINE, n}, {HCA_COST_POST_SEND, n}, {HCA_COST_POST_RECV, n});
    for (int i = 0; i < 3; i++)
        pair_close(&p[i]);
}

static const struct verbs_case cases[] = {
    CASE(sends_rc), CASE(sends_uc),     CASE(datagrams),
    CASE(remote),   CASE(translations), CASE(translations_by_default),
    CASE(switches), CASE(once),         CASE(messages_take_their_time),
    CASE(threads),
};
VERBS_MAIN("data", cases)
