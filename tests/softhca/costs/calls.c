/* Costs of calls: each is spent as often as the call is made, by the process that makes it, and takes its time. A
 * program of the verbs suite, for softhca alone; costs_test.sh runs it. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"
#include "counts.h"

#include <sys/wait.h>

#define ALL_CALLS                                                                                                      \
    "reg=10ns,page=1ns,dereg=10ns,qp=10ns,qp_entry=1ns,cq=10ns,cq_entry=1ns,modify=10ns,destroy=10ns,"                 \
    "post_send=10ns,post_recv=10ns,event=10ns"

#define PAGE 4096u

static char *pages(size_t bytes, int flags)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

static struct ibv_mr *reg(struct device *d, void *at, size_t length)
{
    struct ibv_mr *mr = ibv_reg_mr(d->pd, at, length, IBV_ACCESS_LOCAL_WRITE);

    REQUIRE(mr != NULL);
    return mr;
}

static void registrations(void)
{
    struct device d;
    char *at = pages(1024 * PAGE, 0);

    costs_set(ALL_CALLS);
    device_open(&d);
    REQUIRE(at != NULL);
    struct counts c = counts_now();
    struct ibv_mr *one = reg(&d, at, 1);
    COUNTED(&c, {HCA_COST_REG, 1}, {HCA_COST_PAGE, 1});
    struct ibv_mr *two = reg(&d, at + PAGE - 1, 2);
    COUNTED(&c, {HCA_COST_REG, 1}, {HCA_COST_PAGE, 2});
    struct ibv_mr *many = reg(&d, at, 1024 * PAGE);
    COUNTED(&c, {HCA_COST_REG, 1}, {HCA_COST_PAGE, 1024});
    REQUIRE_OK(ibv_dereg_mr(many));
    COUNTED(&c, {HCA_COST_DEREG, 1});
    /* Of the same memory with other rights nothing is registered; with other memory it is one, and the old one goes. */
    REQUIRE_OK(ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
    NOTHING_COUNTED(&c);
    REQUIRE_OK(ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, 3 * (size_t)PAGE, 0));
    COUNTED(&c, {HCA_COST_REG, 1}, {HCA_COST_PAGE, 3}, {HCA_COST_DEREG, 1});
    REQUIRE(ibv_reg_mr(d.pd, at, PAGE, IBV_ACCESS_REMOTE_WRITE) == NULL); /* refused */
    NOTHING_COUNTED(&c);
    REQUIRE_OK(ibv_dereg_mr(one));
    REQUIRE_OK(ibv_dereg_mr(two));
    COUNTED(&c, {HCA_COST_DEREG, 2});
    device_close(&d);
}

/* By their own size, where there are any. */
static void huge_pages(void)
{
    const size_t huge = 2u << 20;
    struct device d;
    char *at = pages(2 * huge, MAP_HUGETLB | MAP_POPULATE);

    if (!at) {
        fprintf(stderr, "no huge pages of 2 MiB: not tried\n");
        return;
    }
    costs_set(ALL_CALLS);
    device_open(&d);
    struct counts c = counts_now();
    struct ibv_mr *mr = reg(&d, at, 2 * huge);
    COUNTED(&c, {HCA_COST_REG, 1}, {HCA_COST_PAGE, 2});
    REQUIRE_OK(ibv_dereg_mr(mr));
    device_close(&d);
}

static void queues(void)
{
    struct device d;
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 10, .max_sge = 1}};

    costs_set(ALL_CALLS);
    device_open(&d);
    struct counts c = counts_now();
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);
    REQUIRE(cq != NULL);
    COUNTED(&c, {HCA_COST_CQ, 1}, {HCA_COST_CQ_ENTRY, 100});
    REQUIRE(ibv_create_cq(d.ctx, 0, NULL, NULL, 0) == NULL);
    NOTHING_COUNTED(&c);
    struct ibv_srq *srq = ibv_create_srq(d.pd, &shared);
    REQUIRE(srq != NULL);
    NOTHING_COUNTED(&c);
    for (int with_srq = 0; with_srq < 2; with_srq++) {
        struct ibv_qp_init_attr a = {.send_cq = cq,
                                     .recv_cq = cq,
                                     .srq = with_srq ? srq : NULL,
                                     .cap = {.max_send_wr = 33, .max_recv_wr = 9},
                                     .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp = ibv_create_qp(d.pd, &a);
        REQUIRE(qp != NULL);
        COUNTED(&c, {HCA_COST_QP, 1}, {HCA_COST_QP_ENTRY, with_srq ? 33 : 42});
        struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = d.port_num};
        REQUIRE_FAILS(ibv_modify_qp(qp, &init, IBV_QP_STATE));
        NOTHING_COUNTED(&c);
        REQUIRE_OK(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
        COUNTED(&c, {HCA_COST_MODIFY, 1});
        REQUIRE_FAILS(ibv_destroy_cq(cq));
        NOTHING_COUNTED(&c);
        REQUIRE_OK(ibv_destroy_qp(qp));
        COUNTED(&c, {HCA_COST_DESTROY, 1});
    }
    REQUIRE_OK(ibv_destroy_srq(srq));
    NOTHING_COUNTED(&c);
    REQUIRE_OK(ibv_destroy_cq(cq));
    COUNTED(&c, {HCA_COST_DESTROY, 1});
    device_close(&d);
}

/* By a list of three and alone; receives of a queue of its own and of a shared one. */
static void posting(void)
{
    struct pair p;

    costs_set(ALL_CALLS);
    PAIR(&p, .type = IBV_QPT_RC);
    struct counts c = counts_now();
    struct op op[3];
    struct ibv_send_wr *bad;
    for (uint64_t i = 0; i < 3; i++) {
        recv_post(&p.b, i, 1024, 64);
        op[i] = op_make(&p.a, IBV_WR_SEND, i, 0, 64);
        op[i].wr.sg_list = op[i].sge;
    }
    COUNTED(&c, {HCA_COST_POST_RECV, 3});
    op[0].wr.next = &op[1].wr;
    op[1].wr.next = &op[2].wr;
    REQUIRE_OK(ibv_post_send(p.a.qp, &op[0].wr, &bad));
    COUNTED(&c, {HCA_COST_POST_SEND, 3});
    for (uint64_t i = 0; i < 3; i++)
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    NOTHING_COUNTED(&c);
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 10, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(p.dev.pd, &shared);
    REQUIRE(srq != NULL);
    srq_post(srq, 1, &p.b.mem, 0, 64);
    srq_post(srq, 2, &p.b.mem, 0, 64);
    COUNTED(&c, {HCA_COST_POST_RECV, 2});
    REQUIRE_OK(ibv_destroy_srq(srq));
    pair_close(&p);
}

/* "post" is both. */
static void posting_both(void)
{
    struct pair p;

    costs_set("post=10ns");
    PAIR(&p, .type = IBV_QPT_RC);
    struct counts c = counts_now();
    pair_exchange(&p, 1);
    COUNTED(&c, {HCA_COST_POST_SEND, 1}, {HCA_COST_POST_RECV, 1});
    pair_close(&p);
}

static void polling(void)
{
    struct device d;
    struct ibv_wc wc;

    costs_set("poll=10us");
    device_open(&d);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);
    REQUIRE(cq != NULL);
    struct counts c = counts_now();
    const double begin = now();
    for (int i = 0; i < 1000; i++)
        REQUIRE_EQ(ibv_poll_cq(cq, 1, &wc), 0);
    REQUIRE_MSG(now() - begin >= 0.0099, "1000 polls of 10 us take %.6f s", now() - begin);
    COUNTED(&c, {HCA_COST_POLL, 1000});
    REQUIRE_OK(ibv_destroy_cq(cq));
    device_close(&d);
}

static void completion_events(void)
{
    struct device d;
    struct end e;
    struct ibv_cq *from;
    void *user;

    costs_set(ALL_CALLS);
    device_open(&d);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(d.ctx);
    REQUIRE(channel != NULL);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 16, NULL, channel, 0);
    REQUIRE(cq != NULL);
    end_open(&e, &d, &(struct end_options){.recv_cq = cq});
    struct end_address own = end_address(&e);
    end_connect(&e, &own);
    for (uint64_t i = 0; i < 3; i++) {
        REQUIRE_OK(ibv_req_notify_cq(cq, 0));
        recv_post(&e, i, 0, 64);
        struct op op = op_make(&e, IBV_WR_SEND, i, 128, 64);
        op_post(&e, &op);
        struct counts c = counts_now();
        REQUIRE_OK(ibv_get_cq_event(channel, &from, &user));
        COUNTED(&c, {HCA_COST_EVENT, 1});
        ibv_ack_cq_events(cq, 1);
        cq_expect(cq, i, IBV_WC_SUCCESS);
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
    }
    end_close(&e);
    REQUIRE_OK(ibv_destroy_cq(cq));
    REQUIRE_OK(ibv_destroy_comp_channel(channel));
    device_close(&d);
}

static void calls_take_their_time(void)
{
    struct device d;
    char *at = pages(16 * PAGE, 0);

    costs_set("reg=1ms,page=100us,dereg=2ms,cq=1ms,cq_entry=100us,destroy=2ms");
    device_open(&d);
    const double begin = now();
    struct ibv_mr *mr = reg(&d, at, 10 * PAGE);
    const double registered = now();
    REQUIRE_OK(ibv_dereg_mr(mr));
    const double deregistered = now();
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 10, NULL, NULL, 0);
    const double made = now();
    REQUIRE_OK(ibv_destroy_cq(cq));
    const double destroyed = now();
    REQUIRE_MSG(registered - begin >= 0.00198, "registered in %.6f s", registered - begin);
    REQUIRE_MSG(deregistered - registered >= 0.00198, "deregistered in %.6f s", deregistered - registered);
    REQUIRE_MSG(made - deregistered >= 0.00198, "made in %.6f s", made - deregistered);
    REQUIRE_MSG(destroyed - made >= 0.00198, "destroyed in %.6f s", destroyed - made);
    device_close(&d);
}

/* Nothing set: nothing is counted, whatever is done. */
static void none(void)
{
    struct pair p;

    REQUIRE_OK(unsetenv("SOFTHCA_COST"));
    PAIR(&p, .type = IBV_QPT_RC);
    struct counts c = {0};
    pair_exchange(&p, 1);
    pair_close(&p);
    NOTHING_COUNTED(&c);
}

/* A child of fork that opens a device spends costs of its own, from none on. */
static void child(void)
{
    struct pair p;
    int status;

    costs_set("packet=10ns,cold=10ns,switch=10ns");
    PAIR(&p, .type = IBV_QPT_RC);
    pair_exchange(&p, 1);
    const pid_t pid = fork();
    if (pid == 0) {
        struct pair own;
        PAIR(&own, .type = IBV_QPT_RC);
        struct counts c = {0};
        NOTHING_COUNTED(&c);
        pair_exchange(&own, 2);
        COUNTED(&c, {HCA_COST_PACKET, 1}, {HCA_COST_COLD, 1});
        pair_close(&own);
        _exit(0);
    }
    REQUIRE(pid > 0);
    REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
    struct counts c = {0};
    COUNTED(&c, {HCA_COST_PACKET, 1}, {HCA_COST_COLD, 1});
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(registrations),
    CASE(huge_pages),
    CASE(queues),
    CASE(posting),
    CASE(posting_both),
    CASE(polling),
    CASE(completion_events),
    CASE(calls_take_their_time),
    CASE(none),
    CASE(child),
};
VERBS_MAIN("calls", cases)
