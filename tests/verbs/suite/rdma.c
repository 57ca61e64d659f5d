/* RDMA write, write with immediate, read: data, completions, order, what is seen where. IBA 9.4, 9.7.5, 10.7.1, 11.4.1;
 * man ibv_post_send. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"

#include <arpa/inet.h>

static void write_one(struct pair *p, size_t len, uint32_t seed)
{
    struct end_address to = end_address(&p->b);
    pattern_fill(p->a.mem.p + 64, len, seed);
    memset(p->b.mem.p, 0xee, p->b.mem.size);
    struct op op = op_rdma(&p->a, IBV_WR_RDMA_WRITE, seed, 64, len, &to, 129);
    op_post(&p->a, &op);
    struct ibv_wc wc = cq_expect(p->a.send_cq, seed, IBV_WC_SUCCESS);
    REQUIRE_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
    if (p->a.opt.type == IBV_QPT_UC) /* unreliable: the completion does not say that it has arrived */
        for (double end = now() + time_limit(); len && !pattern_matches(p->b.mem.p + 129, len, seed) && now() < end;)
            sleep_ms(1);
    pattern_check(p->b.mem.p + 129, len, seed);
    REQUIRE_EQ(p->b.mem.p[128], 0xee);
    REQUIRE_EQ(p->b.mem.p[129 + len], 0xee);
}

static void write_sizes(void)
{
    const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = types[t], .memory = 300000);
        size_t mtu = device_mtu(&p.dev);
        const size_t list[] = {0, 1, 3, 8, 63, 64, mtu - 1, mtu, mtu + 1, 3 * mtu + 5, 65536, 262144};
        for (uint32_t i = 0; i < sizeof list / sizeof *list; i++)
            write_one(&p, list[i], i);
        pair_close(&p);
    }
}

/* A write uses no receive and makes no completion at its target. */
static void write_is_silent(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    recv_post(&p.b, 1, 0, 100);
    for (uint32_t i = 0; i < 5; i++)
        write_one(&p, 100, i);
    cq_expect_none(p.b.recv_cq, 20);
    struct op op = op_make(&p.a, IBV_WR_SEND, 9, 0, 10);
    op_post(&p.a, &op);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    pair_close(&p);
}

/* A write with immediate uses one receive, whose buffers it does not touch; byte_len is the length of the write. */
static void write_with_immediate(void)
{
    const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
    const size_t list[] = {0, 1, 100, 10000};
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = types[t]);
        struct end_address to = end_address(&p.b);
        for (uint32_t i = 0; i < 8; i++) {
            size_t len = list[i % 4];
            bool empty = i >= 4; /* a receive without any buffer does as well */
            pattern_fill(p.a.mem.p, len, i);
            memset(p.b.mem.p, 0x99, 64);
            recv_post(&p.b, i, 0, empty ? 0 : 64);
            struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 100 + i, 0, len, &to, 4096);
            op.wr.imm_data = htonl(0x01020304 + i);
            op_post(&p.a, &op);
            struct ibv_wc s = cq_expect(p.a.send_cq, 100 + i, IBV_WC_SUCCESS);
            struct ibv_wc r = cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
            REQUIRE_EQ(s.opcode, IBV_WC_RDMA_WRITE);
            REQUIRE_EQ(r.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
            REQUIRE(r.wc_flags & IBV_WC_WITH_IMM);
            REQUIRE_EQ(ntohl(r.imm_data), 0x01020304 + i);
            REQUIRE_EQ(r.byte_len, len);
            REQUIRE_EQ(r.qp_num, p.b.qp->qp_num);
            pattern_check(p.b.mem.p + 4096, len, i);
            for (int k = 0; k < 64; k++)
                REQUIRE_EQ(p.b.mem.p[k], 0x99);
        }
        pair_close(&p);
    }
}

static void gathered_and_inline_writes(void)
{
    struct pair p;
    PAIR(&p, .inline_size = 128);
    struct end_address to = end_address(&p.b);
    uint8_t whole[3000];
    pattern_fill(whole, sizeof whole, 4);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 1, &to, 11);
    const uint32_t cut[] = {1, 2500, 0, 499};
    for (uint32_t i = 0, at = 0; i < 4; at += cut[i++]) {
        memcpy(p.a.mem.p + i * 5000, whole + at, cut[i]);
        op.sge[i] = (struct ibv_sge){(uintptr_t)p.a.mem.p + i * 5000, cut[i], p.a.mem.mr->lkey};
    }
    op.wr.num_sge = 4;
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    pattern_check(p.b.mem.p + 11, sizeof whole, 4);
    uint8_t text[128];
    pattern_fill(text, sizeof text, 5);
    op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 1, &to, 21);
    op.sge[0] = (struct ibv_sge){(uintptr_t)text, sizeof text, 0};
    op.wr.send_flags |= IBV_SEND_INLINE;
    op_post(&p.a, &op);
    memset(text, 0, sizeof text);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    pattern_check(p.b.mem.p + 21, sizeof text, 5);
    pair_close(&p);
}

static void read_sizes(void)
{
    struct pair p;
    PAIR(&p, .memory = 300000);
    struct end_address from = end_address(&p.b);
    size_t mtu = device_mtu(&p.dev);
    const size_t list[] = {0, 1, 3, 8, 63, 64, mtu - 1, mtu, mtu + 1, 3 * mtu + 5, 65536, 262144};
    for (uint32_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t len = list[i];
        pattern_fill(p.b.mem.p + 77, len, i);
        memset(p.a.mem.p, 0xee, p.a.mem.size);
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_READ, i, 31, len, &from, 77);
        op_post(&p.a, &op);
        REQUIRE_EQ(cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
        pattern_check(p.a.mem.p + 31, len, i);
        REQUIRE_EQ(p.a.mem.p[30], 0xee);
        REQUIRE_EQ(p.a.mem.p[31 + len], 0xee);
    }
    pair_close(&p);
}

/* IBA 11.4.2.1: a completed read tells the number of bytes. */
static void read_tells_its_length(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address from = end_address(&p.b);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_READ, 1, 0, 5000, &from, 0);
    op_post(&p.a, &op);
    REQUIRE_EQ(cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS).byte_len, 5000);
    pair_close(&p);
}

static void scattered_read(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address from = end_address(&p.b);
    uint8_t whole[3000];
    pattern_fill(p.b.mem.p + 5, sizeof whole, 4);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_READ, 1, 0, 1, &from, 5);
    const uint32_t cut[] = {1, 2400, 599};
    for (uint32_t i = 0; i < 3; i++)
        op.sge[i] = (struct ibv_sge){(uintptr_t)p.a.mem.p + (3 - i) * 5001, cut[i], p.a.mem.mr->lkey};
    op.wr.num_sge = 3;
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    for (uint32_t i = 0, at = 0; i < 3; at += cut[i++])
        memcpy(whole + at, p.a.mem.p + (3 - i) * 5001, cut[i]);
    pattern_check(whole, sizeof whole, 4);
    pair_close(&p);
}

/* More reads at once than max_rd_atomic: the queue pair waits by itself, and completes them in order. */
static void many_reads(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address from = end_address(&p.b);
    pattern_fill(p.b.mem.p, 32 * 1024, 6);
    for (uint64_t i = 0; i < 32; i++) {
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_READ, i, i * 1024, 1024, &from, i * 1024);
        op_post(&p.a, &op);
    }
    for (uint64_t i = 0; i < 32; i++)
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    pattern_check(p.a.mem.p, 32 * 1024, 6);
    pair_close(&p);
}

/* IBA 10.8.3.3 (table of ordering): a read sees an earlier write; a send finds an earlier write's data in place; a
 * fenced send waits for an earlier read. */
static void order_between_kinds(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address b = end_address(&p.b);
    for (uint32_t i = 0; i < 20; i++) {
        pattern_fill(p.a.mem.p, 9000, i);
        pattern_fill(p.b.mem.p + 30000, 3000, 500 + i);
        memset(p.a.mem.p + 10000, 0, 20000);
        recv_post(&p.b, i, 20000, 3000);
        struct op w = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 0, 0, 9000, &b, 0);
        struct op r = op_rdma(&p.a, IBV_WR_RDMA_READ, 1, 10000, 9000, &b, 0);
        struct op r2 = op_rdma(&p.a, IBV_WR_RDMA_READ, 2, 20000, 3000, &b, 30000);
        struct op s = op_make(&p.a, IBV_WR_SEND, 3, 20000, 3000);
        w.wr.send_flags = r.wr.send_flags = r2.wr.send_flags = 0;
        s.wr.send_flags |= IBV_SEND_FENCE;
        op_post(&p.a, &w);
        op_post(&p.a, &r);
        op_post(&p.a, &r2);
        op_post(&p.a, &s);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
        pattern_check(p.b.mem.p, 9000, i);
        pattern_check(p.b.mem.p + 20000, 3000, 500 + i);
        cq_expect(p.a.send_cq, 3, IBV_WC_SUCCESS);
        pattern_check(p.a.mem.p + 10000, 9000, i);
    }
    pair_close(&p);
}

/* IBA 9.9.3: a responder of an unreliable connection drops a write with a bad key and goes on; nobody is told. */
static void unreliable_bad_key_dropped(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_UC);
    struct end_address to = end_address(&p.b);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    op.wr.wr.rdma.rkey ^= 1;
    memset(p.a.mem.p, 7, 100);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    recv_post(&p.b, 2, 1000, 100);
    op = op_make(&p.a, IBV_WR_SEND, 3, 0, 100);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 3, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 2, IBV_WC_SUCCESS);
    REQUIRE_EQ(p.b.mem.p[0], 0);
    REQUIRE_EQ(end_state(&p.b), IBV_QPS_RTS);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(write_sizes),          CASE(write_is_silent),
    CASE(write_with_immediate), CASE(gathered_and_inline_writes),
    CASE(read_sizes),           CASE(read_tells_its_length),
    CASE(scattered_read),       CASE(many_reads),
    CASE(order_between_kinds),  CASE(unreliable_bad_key_dropped),
};
VERBS_MAIN("rdma", cases)
