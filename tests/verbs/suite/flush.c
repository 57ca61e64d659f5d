/* What becomes of outstanding work when a queue pair goes to the error state. IBA 10.3.1.7, 10.8.4 (flush), 11.6.3
 * (events). */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <sched.h>

static void receives_in_order(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    for (uint64_t i = 0; i < 40; i++)
        recv_post(&p.a, i, 0, 8);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
    for (uint64_t i = 0; i < 40; i++) {
        struct ibv_wc wc = cq_expect(p.a.recv_cq, i, IBV_WC_WR_FLUSH_ERR);
        REQUIRE_EQ(wc.qp_num, p.a.qp->qp_num);
    }
    cq_expect_none(p.a.recv_cq, 20);
    pair_close(&p);
}

/* UD and UC as well. */
static void receives_of_unreliable(void)
{
    const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
    for (int t = 0; t < 2; t++) {
        struct pair p;
        PAIR(&p, .type = types[t]);
        for (uint64_t i = 0; i < 10; i++)
            recv_post(&p.a, i, 0, 8);
        REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
        for (uint64_t i = 0; i < 10; i++)
            cq_expect(p.a.recv_cq, i, IBV_WC_WR_FLUSH_ERR);
        pair_close(&p);
    }
}

/* Sends that wait for a receiver that is not ready are flushed, signalled or not. */
static void waiting_sends(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = 7);
    for (uint64_t i = 0; i < 10; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 100);
        op.wr.send_flags = i % 2 ? IBV_SEND_SIGNALED : 0;
        op_post(&p.a, &op);
    }
    sleep_ms(20);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
    for (uint64_t i = 0; i < 10; i++)
        cq_expect(p.a.send_cq, i, IBV_WC_WR_FLUSH_ERR);
    cq_expect_none(p.a.send_cq, 20);
    pair_close(&p);
}

/* Good requests before a bad one succeed; the bad one tells its error; those behind it are flushed, and so are
 * receives. */
static void error_in_the_middle(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    for (uint64_t i = 0; i < 6; i++) {
        recv_post(&p.a, 100 + i, 0, 8);
        recv_post(&p.b, 100 + i, 0, 8);
    }
    for (uint64_t i = 0; i < 10; i++) {
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, i, 0, 100, &to, i == 4 ? 65500 : 0);
        op.wr.send_flags = i == 4 || i == 3 ? IBV_SEND_SIGNALED : 0;
        op_post(&p.a, &op);
    }
    cq_expect(p.a.send_cq, 3, IBV_WC_SUCCESS);
    cq_expect(p.a.send_cq, 4, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 5; i < 10; i++)
        cq_expect(p.a.send_cq, i, IBV_WC_WR_FLUSH_ERR);
    for (uint64_t i = 0; i < 6; i++) {
        cq_expect(p.a.recv_cq, 100 + i, IBV_WC_WR_FLUSH_ERR);
        cq_expect(p.b.recv_cq, 100 + i, IBV_WC_WR_FLUSH_ERR);
    }
    cq_expect_none(p.a.send_cq, 20);
    pair_close(&p);
}

/* Everything is flushed exactly once while both sides are busy, and each request has one completion. */
static void exactly_once(void)
{
    for (int round = 0; round < 10; round++) {
        struct pair p;
        PAIR(&p, .type = IBV_QPT_RC);
        struct end_address to = end_address(&p.b);
        struct ibv_wc wc;
        for (uint64_t i = 0; i < 60; i++) {
            struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, i, 0, 4096, &to, 0);
            op_post(&p.a, &op);
        }
        for (int i = 0; i < round * 3; i++)
            sched_yield();
        REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
        bool flushed = false;
        for (uint64_t i = 0; i < 60; i++) {
            cq_next(p.a.send_cq, &wc);
            REQUIRE_EQ(wc.wr_id, i);
            REQUIRE_MSG(wc.status == IBV_WC_WR_FLUSH_ERR || (wc.status == IBV_WC_SUCCESS && !flushed),
                        "%d ended with %s", (int)i, ibv_wc_status_str(wc.status));
            flushed = wc.status == IBV_WC_WR_FLUSH_ERR;
        }
        cq_expect_none(p.a.send_cq, 5);
        pair_close(&p);
    }
}

/* After RESET the queue pair is as new. */
static void usable_again(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = NO_RNR_RETRY);
    for (uint32_t i = 0; i < 3; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
        pair_reconnect(&p);
        pair_exchange(&p, i);
    }
    pair_close(&p);
}

/* Completions of a destroyed queue pair may stay behind, but destroying leaves the completion queue usable by others.
 */
static void destroyed_with_work(void)
{
    struct device d;
    struct end a, b;
    device_open(&d);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 256, NULL, NULL, 0);
    REQUIRE(cq != NULL);
    struct end_options o = {.send_cq = cq, .recv_cq = cq};
    for (uint32_t round = 0; round < 5; round++) {
        struct ibv_wc wc;
        end_open(&a, &d, &o);
        end_open(&b, &d, &o);
        struct end_address aa = end_address(&a), ba = end_address(&b);
        end_connect(&a, &ba);
        end_connect(&b, &aa);
        recv_post(&b, 1, 0, 8);
        struct op op = op_make(&a, IBV_WR_SEND, 2, 0, 8);
        op_post(&a, &op);
        cq_next(cq, &wc);
        REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
        cq_next(cq, &wc);
        REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
        for (uint64_t i = 0; i < 10; i++) {
            recv_post(&a, i, 0, 8);
            struct op back = op_make(&b, IBV_WR_SEND, i, 0, 8);
            op_post(&b, &back);
        }
        end_close(&a);
        end_close(&b);
        while (ibv_poll_cq(cq, 1, &wc) > 0)
            ;
    }
    REQUIRE_OK(ibv_destroy_cq(cq));
    device_close(&d);
}

/* IBA 11.6.3.2: the last receive of an SRQ that a queue pair in the error state holds has been reached: the queue pair
 * can be reset. */
static void last_wqe_reached(void)
{
    struct device d;
    struct end a, b;
    struct ibv_async_event ev;
    device_open(&d);
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(d.pd, &init);
    REQUIRE(srq != NULL);
    end_open(&a, &d, &(struct end_options){.srq = srq});
    end_open(&b, &d, &(struct end_options){0});
    struct end_address aa = end_address(&a), ba = end_address(&b);
    end_connect(&a, &ba);
    end_connect(&b, &aa);
    srq_post(srq, 1, &a.mem, 0, 100);
    REQUIRE_OK(end_to_state(&a, IBV_QPS_ERR));
    event_next(d.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    REQUIRE(ev.element.qp == a.qp);
    ibv_ack_async_event(&ev);
    cq_expect_none(a.recv_cq, 10); /* what no queue pair has taken stays in the SRQ */
    end_close(&a);
    end_close(&b);
    REQUIRE_OK(ibv_destroy_srq(srq));
    device_close(&d);
}

/* The same when it is the peer that brought it into the error state, by an access that is refused. */
static void last_wqe_after_error(void)
{
    struct device d;
    struct end a, b;
    struct ibv_async_event ev;
    device_open(&d);
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(d.pd, &init);
    REQUIRE(srq != NULL);
    end_open(&a, &d, &(struct end_options){.srq = srq});
    end_open(&b, &d, &(struct end_options){0});
    struct end_address aa = end_address(&a), ba = end_address(&b);
    end_connect(&a, &ba);
    end_connect(&b, &aa);
    aa.rkey ^= 0x77000000;
    struct op op = op_rdma(&b, IBV_WR_RDMA_WRITE, 1, 0, 8, &aa, 0);
    op_post(&b, &op);
    cq_expect(b.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    bool seen = false;
    while (!seen) { /* of the access error there is one too */
        event_next(d.ctx, &ev);
        REQUIRE(ev.element.qp == a.qp);
        seen = ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
        REQUIRE(seen || ev.event_type == IBV_EVENT_QP_ACCESS_ERR);
        ibv_ack_async_event(&ev);
    }
    end_close(&a);
    end_close(&b);
    REQUIRE_OK(ibv_destroy_srq(srq));
    device_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(receives_in_order),   CASE(receives_of_unreliable), CASE(waiting_sends),
    CASE(error_in_the_middle), CASE(exactly_once),           CASE(usable_again),
    CASE(destroyed_with_work), CASE(last_wqe_reached),       CASE(last_wqe_after_error),
};
VERBS_MAIN("flush", cases)
