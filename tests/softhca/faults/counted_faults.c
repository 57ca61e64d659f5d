/* Faults that are counted: messages lost of a whole process, queue pairs beyond a number, limit events of a shared
 * receive queue that are lost or come once more. A program of the verbs suite (tests/verbs), for softhca alone;
 * faults_test.sh runs it. */
#define _GNU_SOURCE 1
#include "control.h"
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"

/* It counts what the process sends: one message of each of many queue pairs, every second of which is lost. */
static void drop_counts_for_the_process(void)
{
    struct pair p[6];

    for (uint32_t i = 0; i < 6; i++)
        PAIR(&p[i], .type = IBV_QPT_UC);
    command("drop 2");
    for (uint32_t i = 0; i < 6; i++) {
        recv_post(&p[i].b, i, 32768, 64);
        struct op op = op_make(&p[i].a, IBV_WR_SEND, i, 0, 8);
        op_post(&p[i].a, &op);
        cq_expect(p[i].a.send_cq, i, IBV_WC_SUCCESS);
        if (i % 2)
            cq_expect_none(p[i].b.recv_cq, 5);
        else
            cq_expect(p[i].b.recv_cq, i, IBV_WC_SUCCESS);
    }
    REQUIRE_EQ(tally("dropped"), 3);
    command("clear");
    for (uint32_t i = 0; i < 6; i++)
        pair_close(&p[i]);
}

static struct ibv_qp *make(struct device *d, struct end *e)
{
    struct ibv_qp_init_attr a = {
        .send_cq = e->send_cq, .recv_cq = e->recv_cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};

    errno = 0;
    return ibv_create_qp(d->pd, &a);
}

/* Beyond so many that live; when one has gone, another can be made. The device does not say so. */
static void queue_pairs_at_most(void)
{
    struct ibv_device_attr before, after;
    struct device d;
    struct end e;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    REQUIRE_OK(ibv_query_device(d.ctx, &before));
    command("qp-most 3");
    REQUIRE_OK(ibv_query_device(d.ctx, &after));
    REQUIRE_EQ(after.max_qp, before.max_qp);
    struct ibv_qp *second = make(&d, &e), *third = make(&d, &e);
    REQUIRE(second != NULL && third != NULL);
    for (int i = 0; i < 3; i++) {
        REQUIRE(make(&d, &e) == NULL);
        REQUIRE_EQ(errno, ENOMEM);
    }
    REQUIRE_OK(ibv_destroy_qp(second));
    second = make(&d, &e);
    REQUIRE(second != NULL);
    REQUIRE(make(&d, &e) == NULL);
    REQUIRE_EQ(tally("qp-refused"), 4);
    command("clear");
    struct ibv_qp *fourth = make(&d, &e);
    REQUIRE(fourth != NULL);
    REQUIRE_OK(ibv_destroy_qp(second));
    REQUIRE_OK(ibv_destroy_qp(third));
    REQUIRE_OK(ibv_destroy_qp(fourth));
    end_close(&e);
    device_close(&d);
}

/* ---- events of a shared receive queue that are lost, or come once more ---- */

static void expect_limit(struct device *d)
{
    struct ibv_async_event ev;

    event_next(d->ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_ack_async_event(&ev);
}

/* Four receives and a limit of three: the second message, of two, leaves two. */
static void reach_limit(struct pair *p, struct ibv_srq *srq)
{
    struct ibv_srq_attr attr = {.srq_limit = 3};

    for (uint64_t i = 0; i < 4; i++)
        srq_post(srq, i, &p->b.mem, 4096 + i * 64, 64);
    REQUIRE_OK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
    for (uint64_t i = 0; i < 2; i++) {
        struct op op = op_make(&p->a, IBV_WR_SEND, i, 0, 8);
        op_post(&p->a, &op);
        cq_expect(p->a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p->b.recv_cq, i, IBV_WC_SUCCESS);
    }
}

static void two_more(struct pair *p)
{
    for (uint64_t i = 2; i < 4; i++) {
        struct op op = op_make(&p->a, IBV_WR_SEND, i, 0, 8);
        op_post(&p->a, &op);
        cq_expect(p->a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p->b.recv_cq, i, IBV_WC_SUCCESS);
    }
}

static void limit_events(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct pair p;

    device_open(&p.dev);
    struct ibv_srq *srq = ibv_create_srq(p.dev.pd, &init);
    REQUIRE(srq != NULL);
    end_open(&p.a, &p.dev, &(struct end_options){0});
    end_open(&p.b, &p.dev, &(struct end_options){.srq = srq});
    struct end_address a = end_address(&p.a), b = end_address(&p.b);
    end_connect(&p.a, &b);
    end_connect(&p.b, &a);
    command("limit-lost 1");
    reach_limit(&p, srq);
    two_more(&p);
    event_expect_none(p.dev.ctx, 20);
    REQUIRE_EQ(tally("limit-lost"), 1);
    command("limit-again 1");
    reach_limit(&p, srq);
    expect_limit(&p.dev);
    two_more(&p); /* the first of which is told of once more, the other not */
    expect_limit(&p.dev);
    event_expect_none(p.dev.ctx, 20);
    REQUIRE_EQ(tally("limit-again"), 1);
    end_close(&p.a);
    end_close(&p.b);
    REQUIRE_OK(ibv_destroy_srq(srq));
    device_close(&p.dev);
}

static const struct verbs_case cases[] = {
    CASE(drop_counts_for_the_process),
    CASE(queue_pairs_at_most),
    CASE(limit_events),
};
VERBS_MAIN("counted_faults", cases)
