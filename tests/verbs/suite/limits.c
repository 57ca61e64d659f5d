/* What was asked for at creation holds, and no more than the device has is given. IBA 11.2.3 (create), 10.7.3
 * (posting); man ibv_create_qp, ibv_post_send, ibv_post_recv. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

static struct ibv_qp *try_qp(struct pair *p, struct ibv_qp_cap *cap, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {.send_cq = p->a.send_cq, .recv_cq = p->a.recv_cq, .cap = *cap, .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(p->dev.pd, &init);
    *cap = init.cap;
    return qp;
}

/* The values that come back are at least those asked for. */
static void capabilities_are_given(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    const struct ibv_qp_cap wants[] = {{1, 1, 1, 1, 0}, {10, 20, 3, 2, 50}, {100, 100, 8, 8, 128}, {1, 200, 1, 1, 1}};
    for (int i = 0; i < 4; i++) {
        struct ibv_qp_cap got = wants[i];
        struct ibv_qp *qp = try_qp(&p, &got, IBV_QPT_RC);
        REQUIRE(qp != NULL);
        REQUIRE(got.max_send_wr >= wants[i].max_send_wr && got.max_recv_wr >= wants[i].max_recv_wr);
        REQUIRE(got.max_send_sge >= wants[i].max_send_sge && got.max_recv_sge >= wants[i].max_recv_sge);
        REQUIRE(got.max_inline_data >= wants[i].max_inline_data);
        REQUIRE_OK(ibv_destroy_qp(qp));
    }
    pair_close(&p);
}

static void beyond_the_device_refused(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_device_attr *d = &p.dev.attr;
    const struct ibv_qp_cap wants[] = {{(uint32_t)d->max_qp_wr + 1, 1, 1, 1, 0},
                                       {1, (uint32_t)d->max_qp_wr + 1, 1, 1, 0},
                                       {1, 1, (uint32_t)d->max_sge + 1, 1, 0},
                                       {1, 1, 1, (uint32_t)d->max_sge + 1, 0},
                                       {1, 1, 1, 1, 1 << 24}};
    for (int i = 0; i < 5; i++) {
        struct ibv_qp_cap cap = wants[i];
        REQUIRE_MSG(try_qp(&p, &cap, IBV_QPT_RC) == NULL, "a queue pair beyond limit %d was created", i);
    }
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = (uint32_t)d->max_srq_wr + 1, .max_sge = 1}};
    REQUIRE(ibv_create_srq(p.dev.pd, &srq) == NULL);
    srq.attr.max_wr = 1;
    srq.attr.max_sge = (uint32_t)d->max_srq_sge + 1;
    REQUIRE(ibv_create_srq(p.dev.pd, &srq) == NULL);
    pair_close(&p);
}

static void unknown_type_refused(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_qp_cap cap = {1, 1, 1, 1, 0};
    REQUIRE(try_qp(&p, &cap, (enum ibv_qp_type)77) == NULL);
    pair_close(&p);
}

/* A type that the device does not have is not supported; the arguments are not wrong. IBV_QPT_DRIVER is of no device
 * that the suite knows. */
static void absent_type_not_supported(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_qp_cap cap = {1, 1, 1, 1, 0};
    errno = 0;
    REQUIRE(try_qp(&p, &cap, IBV_QPT_DRIVER) == NULL);
    REQUIRE_EQ(errno, EOPNOTSUPP);
    pair_close(&p);
}

/* What comes back as max_inline_data may be sent inline, though less was asked for. */
static void inline_room_is_used(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC, .send_sge = 1);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init));
    recv_post(&p.b, 1, 0, 4096);
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, a.cap.max_inline_data);
    op.sge[0].lkey = 0; /* nothing is read there later */
    op.wr.send_flags = IBV_SEND_SIGNALED | (a.cap.max_inline_data ? IBV_SEND_INLINE : 0);
    op_post(&p.a, &op);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    pair_close(&p);
}

/* More elements than any queue pair here takes; each is valid by itself. */
enum { TOO_MANY = 300 };
static struct ibv_sge *too_many(const struct end *e)
{
    static struct ibv_sge sge[TOO_MANY];
    for (int i = 0; i < TOO_MANY; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)e->mem.p, 1, e->mem.mr->lkey};
    return sge;
}

/* As many sends as max_send_wr says fit, at least; then ENOMEM, until completions have been polled. The receiver is not
 * ready, so nothing completes by itself. */
static void full_send_queue(void)
{
    struct pair p;
    PAIR(&p, .send_wr = 10);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init));
    uint32_t n = 0, cap = a.cap.max_send_wr;
    struct op op = op_make(&p.a, IBV_WR_SEND, 0, 0, 8);
    int rc = 0;
    REQUIRE(cap >= 10 && cap < 200);
    while (n < 1000 && (rc = op_try(&p.a, &op)) == 0)
        op.wr.wr_id = ++n;
    REQUIRE_MSG(n >= 10 && n <= cap, "%u requests fitted, asked for 10, promised %u", n, cap);
    REQUIRE_EQ(rc, ENOMEM);
    for (uint64_t i = 0; i < n; i++) {
        recv_post(&p.b, i, 0, 8);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    pair_exchange(&p, 1);
    pair_close(&p);
}

/* Unsignalled requests keep their places until a later completion has been polled. */
static void unsignalled_keep_places(void)
{
    struct pair p;
    PAIR(&p, .send_wr = 16);
    struct end_address to = end_address(&p.b);
    for (int round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 16; i++) {
            struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, i, 0, 8, &to, 0);
            op.wr.send_flags = i == 15 ? IBV_SEND_SIGNALED : 0;
            op_post(&p.a, &op);
        }
        cq_expect(p.a.send_cq, 15, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

static void full_receive_queue(void)
{
    struct pair p;
    PAIR(&p, .recv_wr = 10);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(p.b.qp, &a, IBV_QP_CAP, &init));
    struct ibv_sge sge = {(uintptr_t)p.b.mem.p, 8, p.b.mem.mr->lkey};
    uint32_t n = 0;
    int rc = 0;
    while (n < 1000 && (rc = recv_try(&p.b, n, &sge, 1)) == 0)
        n++;
    REQUIRE_MSG(n >= 10 && n <= a.cap.max_recv_wr, "%u receives fitted, asked for 10, promised %u", n,
                a.cap.max_recv_wr);
    REQUIRE_EQ(rc, ENOMEM);
    for (uint64_t i = 0; i < n; i++) { /* each of them is there, and in order */
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    REQUIRE_OK(recv_try(&p.b, 1, &sge, 1));
    pair_close(&p);
}

/* Whether a receive whose message has arrived, but whose completion was not polled, takes up room is left open. None is
 * lost either way, and when all are polled there is room again. */
static void receives_that_are_not_polled(void)
{
    struct pair p;
    PAIR(&p, .recv_wr = 8);
    struct ibv_sge sge = {(uintptr_t)p.b.mem.p, 8, p.b.mem.mr->lkey};
    uint64_t n = 0, more = 0;
    while (n < 100 && recv_try(&p.b, n, &sge, 1) == 0)
        n++;
    for (uint64_t i = 0; i < n; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    while (more < n && recv_try(&p.b, n + more, &sge, 1) == 0)
        more++;
    REQUIRE_MSG(more == 0 || more == n, "room for %u of %u", (unsigned)more, (unsigned)n);
    for (uint64_t i = 0; i < n; i++)
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    for (; more < n; more++)
        REQUIRE_OK(recv_try(&p.b, n + more, &sge, 1));
    for (uint64_t i = n; i < 2 * n; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

static void too_many_elements_refused(void)
{
    struct pair p;
    PAIR(&p, .send_sge = 2, .recv_sge = 2);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    struct ibv_sge *sge = too_many(&p.a);
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init));
    REQUIRE(a.cap.max_send_sge < TOO_MANY && a.cap.max_recv_sge < TOO_MANY);
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 8);
    op.wr.num_sge = (int)a.cap.max_send_sge + 1;
    struct ibv_send_wr *bad = NULL;
    op.wr.sg_list = sge;
    REQUIRE_FAILS(ibv_post_send(p.a.qp, &op.wr, &bad));
    REQUIRE(bad == &op.wr);
    REQUIRE_FAILS(recv_try(&p.a, 1, sge, (int)a.cap.max_recv_sge + 1));
    pair_exchange(&p, 1);
    pair_close(&p);
}

/* The longest inline message is accepted, one byte more is not. */
static void inline_limit(void)
{
    struct pair p;
    PAIR(&p, .inline_size = 60);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, IBV_QP_CAP, &init));
    uint32_t max = a.cap.max_inline_data;
    REQUIRE(max >= 60 && max < 60000);
    pattern_fill(p.a.mem.p, max, 1);
    recv_post(&p.b, 1, 0, max);
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, max + 1);
    op.wr.send_flags |= IBV_SEND_INLINE;
    REQUIRE_FAILS(op_try(&p.a, &op));
    op.sge[0].length = max;
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    REQUIRE_EQ(cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS).byte_len, max);
    pattern_check(p.b.mem.p, max, 1);
    pair_close(&p);
}

/* man ibv_post_send: bad_wr points to the first request of a list that was not taken; those before it are carried out.
 */
static void first_bad_of_a_list(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct op ops[4];
    struct ibv_send_wr *bad = NULL;
    for (uint32_t i = 0; i < 4; i++) {
        recv_post(&p.b, i, 0, 8);
        ops[i] = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        ops[i].wr.sg_list = ops[i].sge;
        ops[i].wr.next = i < 3 ? &ops[i + 1].wr : NULL;
    }
    ops[2].wr.sg_list = too_many(&p.a);
    ops[2].wr.num_sge = TOO_MANY;
    REQUIRE_FAILS(ibv_post_send(p.a.qp, &ops[0].wr, &bad));
    REQUIRE(bad == &ops[2].wr);
    for (uint64_t i = 0; i < 2; i++) {
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    cq_expect_none(p.a.send_cq, 20);
    pair_close(&p);
}

static void first_bad_receive(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_sge sge = {(uintptr_t)p.b.mem.p, 8, p.b.mem.mr->lkey};
    struct ibv_recv_wr wr[3], *bad = NULL;
    for (int i = 0; i < 3; i++)
        wr[i] = (struct ibv_recv_wr){
            .wr_id = (uint64_t)i, .next = i < 2 ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1};
    wr[1].sg_list = too_many(&p.b);
    wr[1].num_sge = TOO_MANY;
    REQUIRE_FAILS(ibv_post_recv(p.b.qp, wr, &bad));
    REQUIRE(bad == &wr[1]);
    struct op op = op_make(&p.a, IBV_WR_SEND, 9, 0, 8);
    op_post(&p.a, &op);
    cq_expect(p.b.recv_cq, 0, IBV_WC_SUCCESS);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(capabilities_are_given),
    CASE(beyond_the_device_refused),
    CASE(unknown_type_refused),
    CASE(absent_type_not_supported),
    CASE(inline_room_is_used),
    CASE(full_send_queue),
    CASE(unsignalled_keep_places),
    CASE(full_receive_queue),
    CASE(receives_that_are_not_polled),
    CASE(too_many_elements_refused),
    CASE(inline_limit),
    CASE(first_bad_of_a_list),
    CASE(first_bad_receive),
};
VERBS_MAIN("limits", cases)
