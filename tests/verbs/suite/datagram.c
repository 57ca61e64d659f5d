/* UD queue pairs: address handles, the 40 bytes of GRH space, queue keys, silent drops. IBA 9.8.3, 10.2.2 (address
 * handles), 11.4.2.1; man ibv_post_recv ("the GRH"), ibv_poll_cq. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <arpa/inet.h>

#define GRH 40

struct datagram {
    struct pair p;
    struct ibv_ah *ah; /* of b, for a; both have the same port */
};

static void datagram_open(struct datagram *d, const struct end_options *o)
{
    pair_open(&d->p, o, o);
    struct end_address to = end_address(&d->p.b);
    d->ah = end_ah(&d->p.a, &to);
}

static void datagram_close(struct datagram *d)
{
    REQUIRE_OK(ibv_destroy_ah(d->ah));
    pair_close(&d->p);
}

static struct op datagram_op(struct datagram *d, uint64_t id, size_t off, size_t len)
{
    struct op op = op_make(&d->p.a, IBV_WR_SEND, id, off, len);
    op_to_ud(&op, d->ah, d->p.b.qp->qp_num);
    return op;
}

/* One message arrives: the connection is alive, and nothing that was sent before it is still on the way. */
static void exchange(struct datagram *d, uint32_t seed)
{
    struct pair *p = &d->p;
    pattern_fill(p->a.mem.p, 200, seed);
    recv_post(&p->b, seed, 4096, 200 + GRH);
    struct op op = datagram_op(d, 1000 + seed, 0, 200);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 1000 + seed, IBV_WC_SUCCESS);
    REQUIRE_EQ(cq_expect(p->b.recv_cq, seed, IBV_WC_SUCCESS).byte_len, 200 + GRH);
    pattern_check(p->b.mem.p + 4096 + GRH, 200, seed);
}

static const struct end_options ud = {.type = IBV_QPT_UD, .inline_size = 64};

static void sizes(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    size_t mtu = device_mtu(&p->dev);
    const size_t list[] = {0, 1, 7, 8, 9, 64, 255, mtu - 1, mtu};
    for (uint32_t i = 0; i < 2 * sizeof list / sizeof *list; i++) {
        size_t len = list[i / 2];
        bool imm = i % 2;
        pattern_fill(p->a.mem.p, len, i);
        memset(p->b.mem.p, 0xee, p->b.mem.size);
        recv_post(&p->b, i, 0, len + GRH);
        struct op op = datagram_op(&d, 100 + i, 0, len);
        op.wr.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        op.wr.imm_data = htonl(0xabcd0000 + i);
        op_post(&p->a, &op);
        struct ibv_wc s = cq_expect(p->a.send_cq, 100 + i, IBV_WC_SUCCESS);
        struct ibv_wc r = cq_expect(p->b.recv_cq, i, IBV_WC_SUCCESS);
        REQUIRE_EQ(s.opcode, IBV_WC_SEND);
        REQUIRE_EQ(r.opcode, IBV_WC_RECV);
        REQUIRE_EQ(r.byte_len, len + GRH);
        REQUIRE_EQ(r.src_qp, p->a.qp->qp_num);
        REQUIRE_EQ(r.qp_num, p->b.qp->qp_num);
        REQUIRE_EQ(!!(r.wc_flags & IBV_WC_WITH_IMM), imm);
        if (imm)
            REQUIRE_EQ(ntohl(r.imm_data), 0xabcd0000 + i);
        REQUIRE_EQ(!!(r.wc_flags & IBV_WC_GRH), p->dev.global);
        if (!p->dev.global)
            REQUIRE_EQ(r.slid, p->dev.port.lid);
        pattern_check(p->b.mem.p + GRH, len, i);
        REQUIRE_EQ(p->b.mem.p[GRH + len], 0xee);
    }
    datagram_close(&d);
}

/* A GRH that was sent arrives in the 40 bytes: as an IPv6 form header, or for RoCE v2 over IPv4 as an IPv4 header in
 * the last 20. */
static void header_tells_the_sender(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    struct end_address to = end_address(&p->b);
    struct ibv_ah_attr av;
    address_vector(&p->dev, &to, &av);
    av.is_global = 1;
    av.grh.dgid = p->dev.gid;
    av.grh.sgid_index = p->dev.gid_index;
    av.grh.hop_limit = 5;
    struct ibv_ah *ah = ibv_create_ah(p->dev.pd, &av);
    REQUIRE(ah != NULL);
    memset(p->b.mem.p, 0, 1000);
    recv_post(&p->b, 1, 0, 1000);
    struct op op = op_make(&p->a, IBV_WR_SEND, 2, 2000, 30);
    op_to_ud(&op, ah, p->b.qp->qp_num);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_SUCCESS);
    struct ibv_wc wc = cq_expect(p->b.recv_cq, 1, IBV_WC_SUCCESS);
    REQUIRE(wc.wc_flags & IBV_WC_GRH);
    const uint8_t *grh = p->b.mem.p;
    if (grh[0] >> 4 == 6)
        REQUIRE(!memcmp(grh + 8, p->dev.gid.raw, 16) && !memcmp(grh + 24, p->dev.gid.raw, 16));
    else
        REQUIRE(grh[20] >> 4 == 4 && !memcmp(grh + 32, p->dev.gid.raw + 12, 4) &&
                !memcmp(grh + 36, p->dev.gid.raw + 12, 4));
    REQUIRE_OK(ibv_destroy_ah(ah));
    /* The reply goes to an address made from the completion and this header. */
    struct ibv_ah *back = ibv_create_ah_from_wc(p->dev.pd, &wc, (struct ibv_grh *)p->b.mem.p, p->dev.port_num);
    REQUIRE(back != NULL);
    recv_post(&p->a, 3, 0, 1000);
    struct op reply = op_make(&p->b, IBV_WR_SEND, 4, 2000, 10);
    op_to_ud(&reply, back, wc.src_qp);
    op_post(&p->b, &reply);
    REQUIRE_EQ(cq_expect(p->a.recv_cq, 3, IBV_WC_SUCCESS).byte_len, 10 + GRH);
    cq_expect(p->b.send_cq, 4, IBV_WC_SUCCESS);
    REQUIRE_OK(ibv_destroy_ah(back));
    datagram_close(&d);
}

static void inline_and_lists(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    uint8_t text[64], whole[64];
    pattern_fill(text, 64, 3);
    struct op op = datagram_op(&d, 1, 0, 0);
    op.wr.send_flags |= IBV_SEND_INLINE;
    op.wr.num_sge = 3;
    op.sge[0] = (struct ibv_sge){(uintptr_t)text, 10, 0};
    op.sge[1] = (struct ibv_sge){(uintptr_t)text + 10, 50, 0};
    op.sge[2] = (struct ibv_sge){(uintptr_t)text + 60, 4, 0};
    /* The header in one element, the data in two others. */
    struct ibv_sge sge[3] = {{(uintptr_t)p->b.mem.p, GRH, p->b.mem.mr->lkey},
                             {(uintptr_t)p->b.mem.p + 5000, 7, p->b.mem.mr->lkey},
                             {(uintptr_t)p->b.mem.p + 1001, 100, p->b.mem.mr->lkey}};
    REQUIRE_OK(recv_try(&p->b, 2, sge, 3));
    op_post(&p->a, &op);
    memset(text, 0, sizeof text);
    cq_expect(p->a.send_cq, 1, IBV_WC_SUCCESS);
    REQUIRE_EQ(cq_expect(p->b.recv_cq, 2, IBV_WC_SUCCESS).byte_len, 64 + GRH);
    memcpy(whole, p->b.mem.p + 5000, 7);
    memcpy(whole + 7, p->b.mem.p + 1001, 57);
    pattern_check(whole, 64, 3);
    datagram_close(&d);
}

/* IBA 10.2.4: a message with the wrong queue key is dropped and uses no receive. */
static void wrong_qkey_is_dropped(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    recv_post(&p->b, 1, 0, 500);
    struct op op = datagram_op(&d, 2, 0, 100);
    op.wr.wr.ud.remote_qkey = UD_QKEY + 1;
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect_none(p->b.recv_cq, 50);
    op.wr.wr.ud.remote_qkey = UD_QKEY;
    op.wr.wr_id = 3;
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 3, IBV_WC_SUCCESS);
    cq_expect(p->b.recv_cq, 1, IBV_WC_SUCCESS);
    datagram_close(&d);
}

/* No receive posted, or no such queue pair: the sender's completion is a success all the same. */
static void unreceived_is_dropped(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    struct op op = datagram_op(&d, 1, 0, 100);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 1, IBV_WC_SUCCESS);
    op.wr.wr.ud.remote_qpn = 0xfffff0;
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 1, IBV_WC_SUCCESS);
    cq_expect_none(p->b.recv_cq, 50);
    exchange(&d, 4);
    REQUIRE_EQ(end_state(&p->a), IBV_QPS_RTS);
    REQUIRE_EQ(end_state(&p->b), IBV_QPS_RTS);
    datagram_close(&d);
}

/* IBA 9.8.3: a datagram that does not fit its receive is dropped, or ends the receive with a length error; memory is
 * not overrun, and the sender does not learn of it. */
static void too_long_for_receive(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    struct ibv_wc wc;
    memset(p->b.mem.p, 0x77, 1000);
    recv_post(&p->b, 1, 0, 100);
    struct op op = datagram_op(&d, 2, 2000, 100);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_SUCCESS);
    sleep_ms(50);
    if (ibv_poll_cq(p->b.recv_cq, 1, &wc) == 1)
        REQUIRE_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
    for (int i = 100; i < 1000; i++)
        REQUIRE_EQ(p->b.mem.p[i], 0x77);
    REQUIRE_EQ(end_state(&p->a), IBV_QPS_RTS);
    datagram_close(&d);
}

/* IBA C10-93.1.1: more than the MTU is not sent at all. Adapters complete it with a success, as that clause says, or
 * refuse it. */
static void longer_than_mtu_is_not_sent(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    struct ibv_wc wc;
    recv_post(&p->b, 1, 0, 20000);
    struct op op = datagram_op(&d, 2, 0, device_mtu(&p->dev) + 1);
    if (op_try(&p->a, &op) == 0) {
        cq_next(p->a.send_cq, &wc);
        REQUIRE_EQ(wc.wr_id, 2);
        REQUIRE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_LEN_ERR);
    }
    cq_expect_none(p->b.recv_cq, 50);
    datagram_close(&d);
}

/* One receiver, two senders, told apart by src_qp; the same sender reaches both receivers through one address handle.
 */
static void many_to_many(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    struct end third;
    end_open(&third, &p->dev, &ud);
    end_connect(&third, NULL);
    for (uint64_t i = 0; i < 20; i++)
        recv_post(&p->b, i, i * 512, 512);
    for (uint32_t i = 0; i < 20; i++) {
        const struct end *from = i % 2 ? &p->a : &third;
        pattern_fill(from->mem.p + i * 512, 256, i);
        struct op op = op_make(from, IBV_WR_SEND, i, i * 512, 256);
        op_to_ud(&op, d.ah, p->b.qp->qp_num);
        op_post(from, &op);
        cq_expect(from->send_cq, i, IBV_WC_SUCCESS);
        struct ibv_wc wc = cq_expect(p->b.recv_cq, i, IBV_WC_SUCCESS);
        REQUIRE_EQ(wc.src_qp, from->qp->qp_num);
        pattern_check(p->b.mem.p + i * 512 + GRH, 256, i);
    }
    recv_post(&third, 99, 0, 512);
    struct op op = op_make(&p->a, IBV_WR_SEND, 1, 0, 64);
    op_to_ud(&op, d.ah, third.qp->qp_num);
    op_post(&p->a, &op);
    cq_expect(third.recv_cq, 99, IBV_WC_SUCCESS);
    end_close(&third);
    datagram_close(&d);
}

/* Only sends: RDMA on a UD queue pair is refused when posted, or ends in an error. */
static void rdma_refused(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct ibv_wc wc;
    struct op op = datagram_op(&d, 1, 0, 8);
    op.wr.opcode = IBV_WR_RDMA_WRITE;
    if (op_try(&d.p.a, &op) == 0) {
        cq_next(d.p.a.send_cq, &wc);
        REQUIRE(wc.status != IBV_WC_SUCCESS);
    }
    datagram_close(&d);
}

/* IBA 10.3.1: from any state to RESET and up again, as what comes to a queue pair of that number goes on. What it held
 * is forgotten, so that there is room for as many receives as before. */
static void goes_on_after_reset(void)
{
    struct datagram d;
    datagram_open(&d, &ud);
    struct pair *p = &d.p;
    struct ibv_wc wc;
    for (uint64_t round = 0; round < 10; round++) {
        for (uint64_t i = 0; i < 64; i++)
            recv_post(&p->b, 1000 + i, 0, 100);
        if (round % 2) {
            REQUIRE_OK(end_to_state(&p->b, IBV_QPS_ERR));
            for (uint64_t i = 0; i < 64; i++)
                cq_expect(p->b.recv_cq, 1000 + i, IBV_WC_WR_FLUSH_ERR);
        }
        do /* once more, should a kernel write another state over it: differences.h, processes/reset_at_once */
            REQUIRE_OK(end_to_state(&p->b, IBV_QPS_RESET));
        while (end_state(&p->b) != IBV_QPS_RESET);
        while (ibv_poll_cq(p->b.recv_cq, 1, &wc) > 0)
            ;
        struct end_address none = {0};
        end_connect(&p->b, &none);
        for (uint64_t i = 0; i < 64; i++)
            recv_post(&p->b, i, 0, 100);
        for (uint64_t i = 0; i < 64; i++) {
            struct op op = datagram_op(&d, i, 200, 8);
            op_post(&p->a, &op);
            cq_expect(p->a.send_cq, i, IBV_WC_SUCCESS);
            cq_expect(p->b.recv_cq, i, IBV_WC_SUCCESS);
        }
    }
    datagram_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(sizes),
    CASE(header_tells_the_sender),
    CASE(inline_and_lists),
    CASE(wrong_qkey_is_dropped),
    CASE(unreceived_is_dropped),
    CASE(too_long_for_receive),
    CASE(longer_than_mtu_is_not_sent),
    CASE(many_to_many),
    CASE(rdma_refused),
    CASE(goes_on_after_reset),
};
VERBS_MAIN("datagram", cases)
