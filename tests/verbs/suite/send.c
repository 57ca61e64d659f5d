/* Send and receive over connected queue pairs, reliable and unreliable: data, completions, order.
 * IBA 9.7, 9.8, 10.7, 11.4.2; man ibv_post_send, ibv_post_recv, ibv_poll_cq. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <arpa/inet.h>
#include <stdlib.h>

static const enum ibv_qp_type connected[] = {IBV_QPT_RC, IBV_QPT_UC};

static void send_one(struct pair *p, size_t len, bool with_imm, uint32_t seed)
{
    size_t off = 512;
    pattern_fill(p->a.mem.p + off, len, seed);
    memset(p->b.mem.p, 0xee, p->b.mem.size);
    recv_post(&p->b, seed, off, len);
    struct op op = op_make(&p->a, with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, seed + 1000, off, len);
    op.wr.imm_data = htonl(seed * 3);
    op_post(&p->a, &op);
    struct ibv_wc s = cq_expect(p->a.send_cq, seed + 1000, IBV_WC_SUCCESS);
    struct ibv_wc r = cq_expect(p->b.recv_cq, seed, IBV_WC_SUCCESS);
    REQUIRE_EQ(s.opcode, IBV_WC_SEND);
    REQUIRE_EQ(s.qp_num, p->a.qp->qp_num);
    REQUIRE_EQ(r.opcode, IBV_WC_RECV);
    REQUIRE_EQ(r.qp_num, p->b.qp->qp_num);
    REQUIRE_EQ(r.byte_len, len);
    REQUIRE_EQ(!!(r.wc_flags & IBV_WC_WITH_IMM), with_imm);
    if (with_imm)
        REQUIRE_EQ(ntohl(r.imm_data), seed * 3);
    pattern_check(p->b.mem.p + off, len, seed);
    REQUIRE_EQ(p->b.mem.p[off - 1], 0xee);
    REQUIRE_EQ(p->b.mem.p[off + len], 0xee);
}

static void sizes(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t], .memory = 300000);
        size_t mtu = device_mtu(&p.dev);
        const size_t list[] = {0,  1,       2,   3,       7,       8,           9,     63,    64,
                               65, mtu - 1, mtu, mtu + 1, 2 * mtu, 5 * mtu + 3, 65536, 262144};
        for (uint32_t i = 0; i < sizeof list / sizeof *list; i++) {
            send_one(&p, list[i], false, 2 * i);
            send_one(&p, list[i], true, 2 * i + 1);
        }
        pair_close(&p);
    }
}

/* A receive larger than the message: byte_len is the message's, and what lies beyond is not touched. */
static void shorter_than_receive(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t]);
        memset(p.b.mem.p, 0x55, 1000);
        recv_post(&p.b, 1, 0, 1000);
        struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 33);
        op_post(&p.a, &op);
        REQUIRE_EQ(cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS).byte_len, 33);
        for (int i = 33; i < 1000; i++)
            REQUIRE_EQ(p.b.mem.p[i], 0x55);
        pair_close(&p);
    }
}

/* Zero bytes into a receive that has no scatter list at all. */
static void zero_length(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t]);
        for (uint64_t i = 0; i < 5; i++) {
            recv_post(&p.b, i, 0, 0);
            struct op op = op_make(&p.a, IBV_WR_SEND, 10 + i, 0, 0);
            op_post(&p.a, &op);
            cq_expect(p.a.send_cq, 10 + i, IBV_WC_SUCCESS);
            REQUIRE_EQ(cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS).byte_len, 0);
        }
        pair_close(&p);
    }
}

/* Inline data is taken when the request is posted: the buffer may change at once, and need not be registered. */
static void inline_data(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t], .inline_size = 64);
        for (uint32_t i = 0; i < 65; i++) {
            uint8_t text[64];
            pattern_fill(text, i, i);
            recv_post(&p.b, i, 0, 100);
            struct op op = op_make(&p.a, IBV_WR_SEND, 100 + i, 0, 0);
            op.wr.send_flags |= IBV_SEND_INLINE;
            op.wr.num_sge = 2;
            op.sge[0] = (struct ibv_sge){(uintptr_t)text, i / 3, 0};
            op.sge[1] = (struct ibv_sge){(uintptr_t)text + i / 3, i - i / 3, 0xdeadbeef};
            op_post(&p.a, &op);
            memset(text, 0xff, sizeof text);
            cq_expect(p.a.send_cq, 100 + i, IBV_WC_SUCCESS);
            REQUIRE_EQ(cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS).byte_len, i);
            pattern_check(p.b.mem.p, i, i);
        }
        pair_close(&p);
    }
}

/* Cuts of sender and receiver differ; some elements are empty. An element of length 0 is 2^31 bytes in a receive list
 * of some adapters (IBA leaves it open), so only the sender has empty ones. */
static void scatter_gather(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t]);
        const uint32_t out[] = {1000, 1, 0, 4000}, in[] = {1, 2047, 2952, 500};
        uint8_t whole[5001];
        for (uint32_t round = 0; round < 4; round++) {
            struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 0);
            struct ibv_sge sge[4];
            uint32_t at = 0;
            pattern_fill(whole, sizeof whole, round);
            for (uint32_t i = 0; i < 4; i++) { /* pieces lie apart, in reverse order, at odd places */
                op.sge[i] = (struct ibv_sge){(uintptr_t)p.a.mem.p + (4 - i) * 8001, out[i], p.a.mem.mr->lkey};
                memcpy(p.a.mem.p + (4 - i) * 8001, whole + at, out[i]);
                at += out[i];
                sge[i] = (struct ibv_sge){(uintptr_t)p.b.mem.p + (4 - i) * 8003, in[i], p.b.mem.mr->lkey};
            }
            op.wr.num_sge = 4;
            REQUIRE_OK(recv_try(&p.b, 2, sge, 4));
            op_post(&p.a, &op);
            cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
            REQUIRE_EQ(cq_expect(p.b.recv_cq, 2, IBV_WC_SUCCESS).byte_len, 5001);
            at = 0;
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t n = i < 3 ? in[i] : 1;
                memcpy(whole + at, p.b.mem.p + (4 - i) * 8003, n);
                at += n;
            }
            pattern_check(whole, sizeof whole, round);
        }
        pair_close(&p);
    }
}

static void unsignalled(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t]);
        for (uint64_t i = 0; i < 20; i++)
            recv_post(&p.b, i, 0, 64);
        for (uint64_t i = 0; i < 20; i++) {
            struct op op = op_make(&p.a, IBV_WR_SEND, 100 + i, 0, 64);
            op.wr.send_flags = i % 5 == 4 ? IBV_SEND_SIGNALED : 0;
            op_post(&p.a, &op);
        }
        for (uint64_t i = 4; i < 20; i += 5)
            cq_expect(p.a.send_cq, 100 + i, IBV_WC_SUCCESS);
        for (uint64_t i = 0; i < 20; i++)
            cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
        cq_expect_none(p.a.send_cq, 20);
        pair_close(&p);
    }
}

/* sq_sig_all: each request completes, whatever its flags say. */
static void signal_all(void)
{
    struct pair p;
    PAIR(&p, .signal_all = true);
    for (uint64_t i = 0; i < 10; i++) {
        recv_post(&p.b, i, 0, 64);
        struct op op = op_make(&p.a, IBV_WR_SEND, 100 + i, 0, 64);
        op.wr.send_flags = 0;
        op_post(&p.a, &op);
    }
    for (uint64_t i = 0; i < 10; i++)
        cq_expect(p.a.send_cq, 100 + i, IBV_WC_SUCCESS);
    pair_close(&p);
}

/* Many messages of random sizes through a window: each arrives once, in order; completions come in the order of
 * posting. */
static void order(void)
{
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = connected[t], .memory = 64 * 4096);
        enum { N = 600, WINDOW = 16 };
        uint32_t lens[N];
        uint64_t posted = 0, received = 0, completed = 0, armed = 0;
        struct ibv_wc wc;
        srand(5);
        for (double end = now() + time_limit(); received < N || completed < N;) {
            REQUIRE_MSG(now() < end, "only %d of %d messages arrived", (int)received, N);
            for (; armed < received + 2 * WINDOW && armed < N; armed++)
                recv_post(&p.b, armed, armed % 32 * 4096, 4096);
            for (; posted < received + WINDOW && posted < completed + WINDOW && posted < N; posted++) {
                lens[posted] = (uint32_t)(4 + rand() % 4000);
                uint8_t *at = p.a.mem.p + posted % WINDOW * 4096;
                pattern_fill(at, lens[posted], (uint32_t)posted);
                struct op op = op_make(&p.a, IBV_WR_SEND, posted, posted % WINDOW * 4096, lens[posted]);
                op_post(&p.a, &op);
            }
            while (ibv_poll_cq(p.a.send_cq, 1, &wc) == 1) {
                REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
                REQUIRE_EQ(wc.wr_id, completed);
                completed++;
            }
            while (ibv_poll_cq(p.b.recv_cq, 1, &wc) == 1) {
                REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
                REQUIRE_EQ(wc.wr_id, received);
                REQUIRE_EQ(wc.byte_len, lens[received]);
                pattern_check(p.b.mem.p + received % 32 * 4096, wc.byte_len, (uint32_t)received);
                received++;
            }
        }
        cq_expect_none(p.b.recv_cq, 20);
        cq_expect_none(p.a.send_cq, 0);
        pair_close(&p);
    }
}

/* Both directions of one connection at the same time, and messages of a queue pair connected with itself. */
static void both_directions(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    for (uint64_t i = 0; i < 16; i++) {
        recv_post(&p.a, i, 32768 + i * 256, 256);
        recv_post(&p.b, i, 32768 + i * 256, 256);
    }
    for (uint32_t i = 0; i < 16; i++) {
        pattern_fill(p.a.mem.p + i * 256, 256, i);
        pattern_fill(p.b.mem.p + i * 256, 256, 100 + i);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, i * 256, 256), back = op_make(&p.b, IBV_WR_SEND, i, i * 256, 256);
        op_post(&p.a, &op);
        op_post(&p.b, &back);
    }
    for (uint32_t i = 0; i < 16; i++) {
        cq_expect(p.a.recv_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.send_cq, i, IBV_WC_SUCCESS);
        pattern_check(p.a.mem.p + 32768 + i * 256, 256, 100 + i);
        pattern_check(p.b.mem.p + 32768 + i * 256, 256, i);
    }
    pair_close(&p);
}

static void to_itself(void)
{
    struct device d;
    struct end e;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    struct end_address self = end_address(&e);
    end_connect(&e, &self);
    pattern_fill(e.mem.p, 5000, 9);
    recv_post(&e, 1, 8192, 5000);
    struct op op = op_make(&e, IBV_WR_SEND, 2, 0, 5000);
    op_post(&e, &op);
    cq_expect(e.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect(e.recv_cq, 1, IBV_WC_SUCCESS);
    pattern_check(e.mem.p + 8192, 5000, 9);
    end_close(&e);
    device_close(&d);
}

/* A list of requests in one call. */
static void list_of_requests(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_recv_wr recv[8], *bad_recv = NULL;
    struct ibv_sge recv_sge[8];
    struct op ops[8];
    struct ibv_send_wr *bad = NULL;
    for (uint32_t i = 0; i < 8; i++) {
        recv_sge[i] = (struct ibv_sge){(uintptr_t)p.b.mem.p + i * 512, 512, p.b.mem.mr->lkey};
        recv[i] = (struct ibv_recv_wr){
            .wr_id = i, .next = i < 7 ? &recv[i + 1] : NULL, .sg_list = &recv_sge[i], .num_sge = 1};
        pattern_fill(p.a.mem.p + i * 512, 512, i);
        ops[i] = op_make(&p.a, IBV_WR_SEND, 100 + i, i * 512, 512);
        ops[i].wr.sg_list = ops[i].sge;
        ops[i].wr.next = i < 7 ? &ops[i + 1].wr : NULL;
    }
    REQUIRE_OK(ibv_post_recv(p.b.qp, recv, &bad_recv));
    REQUIRE_OK(ibv_post_send(p.a.qp, &ops[0].wr, &bad));
    for (uint32_t i = 0; i < 8; i++) {
        cq_expect(p.a.send_cq, 100 + i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    pattern_check(p.b.mem.p + 7 * 512, 512, 7);
    pair_close(&p);
}

/* IBA 9.8.2: UC drops a message for which there is no receive; the sender does not learn of it, and later ones
 * arrive. */
static void uc_without_receive_is_dropped(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_UC);
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 100);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    cq_expect_none(p.b.recv_cq, 50);
    REQUIRE_EQ(end_state(&p.b), IBV_QPS_RTS);
    pair_exchange(&p, 1);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(sizes),
    CASE(shorter_than_receive),
    CASE(zero_length),
    CASE(inline_data),
    CASE(scatter_gather),
    CASE(unsignalled),
    CASE(signal_all),
    CASE(order),
    CASE(both_directions),
    CASE(to_itself),
    CASE(list_of_requests),
    CASE(uc_without_receive_is_dropped),
};
VERBS_MAIN("send", cases)
