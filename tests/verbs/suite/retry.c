/* Receiver not ready, and peers that are gone. IBA 9.7.5.1.6 and 9.7.6 (acknowledge timer, retry counters), 9.7.5.2.8
 * (RNR timer); man ibv_modify_qp. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"

/* rnr_retry 0: the first negative acknowledge ends it. */
static void rnr_no_retry(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = NO_RNR_RETRY);
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 100);
    op_post(&p.a, &op);
    struct ibv_wc wc = cq_expect(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    REQUIRE_EQ(wc.qp_num, p.a.qp->qp_num);
    end_await_state(&p.a, IBV_QPS_ERR);
    REQUIRE_EQ(end_state(&p.b), IBV_QPS_RTS); /* the receiver has done nothing wrong */
    pair_close(&p);
}

/* Timer code 24 is 40.96 ms, of the receiver's queue pair; with 3 retries the error comes after 3 such waits or later.
 */
static void rnr_retries_are_counted(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = 3, .min_rnr_timer = 24);
    double start = now();
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 100);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    REQUIRE_MSG(now() - start >= 3 * 0.04, "it gave up after %.3f s", now() - start);
    pair_close(&p);
}

/* rnr_retry 7: for ever. Two sends wait; they go in order once there are receives. */
static void rnr_for_ever(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = 7, .min_rnr_timer = 14);
    for (uint32_t i = 0; i < 2; i++) {
        pattern_fill(p.a.mem.p + i * 1000, 1000, i);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, i * 1000, 1000);
        op_post(&p.a, &op);
    }
    cq_expect_none(p.a.send_cq, 400);
    REQUIRE_EQ(end_state(&p.a), IBV_QPS_RTS);
    for (uint32_t i = 0; i < 2; i++) {
        recv_post(&p.b, i, i * 1000, 1000);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        pattern_check(p.b.mem.p + i * 1000, 1000, i);
    }
    cq_expect_none(p.b.recv_cq, 10);
    pair_close(&p);
}

enum { NOT_READY_FIRST = 8 };

/* Messages that are each refused once or twice at first. False: this process slept so long that one of them may have
 * been refused more often than it may be. */
static bool not_ready_at_first(struct pair *p)
{
    for (uint64_t i = 0; i < NOT_READY_FIRST; i++) {
        double start = now();
        struct op op = op_make(&p->a, IBV_WR_SEND, i, 0, 10);
        op_post(&p->a, &op);
        sleep_ms(80); /* one or two refusals, of 61 ms each */
        recv_post(&p->b, i, 0, 10);
        if (now() - start > 5 * 0.061)
            return false;
        cq_expect(p->a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p->b.recv_cq, i, IBV_WC_SUCCESS);
    }
    return true;
}

/* The count starts anew after a success: more messages than retries, each not ready at first, pass. An attempt that the
 * machine was too busy for says nothing and is made again. */
static void rnr_count_starts_anew(void)
{
    bool done = false;
    for (double end = now() + time_limit(); !done;) {
        struct pair p;
        REQUIRE_MSG(now() < end, "no attempt in %g seconds without a long sleep", time_limit());
        PAIR(&p, .rnr_retry = 6, .min_rnr_timer = 25);
        done = not_ready_at_first(&p);
        pair_close(&p);
    }
}

/* A write with immediate needs a receive too; without one it waits as a send does. A plain write does not. */
static void rnr_of_write_with_immediate(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = 7);
    struct end_address to = end_address(&p.b);
    struct op w = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    struct op imm = op_rdma(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 100, &to, 200);
    op_post(&p.a, &w);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    op_post(&p.a, &imm);
    cq_expect_none(p.a.send_cq, 50);
    recv_post(&p.b, 3, 0, 0);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 3, IBV_WC_SUCCESS);
    pair_close(&p);
}

/* What waits behind the request that is not ready is flushed after it, in order. */
static void rnr_error_flushes_the_rest(void)
{
    struct pair p;
    PAIR(&p, .rnr_retry = 1, .min_rnr_timer = 14);
    for (uint64_t i = 0; i < 5; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 100);
        op.wr.send_flags = 0; /* an error completes unsignalled requests as well */
        op_post(&p.a, &op);
    }
    cq_expect(p.a.send_cq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
    for (uint64_t i = 1; i < 5; i++)
        cq_expect(p.a.send_cq, i, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}

/* The queue pair at the other side is gone, or never was. */
static void peer_queue_pair_gone(void)
{
    struct pair p;
    PAIR(&p, .retry_cnt = 2, .timeout = 12);
    REQUIRE_OK(ibv_destroy_qp(p.b.qp));
    for (uint64_t i = 0; i < 3; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 100);
        op_post(&p.a, &op);
    }
    cq_expect(p.a.send_cq, 0, IBV_WC_RETRY_EXC_ERR);
    cq_expect(p.a.send_cq, 1, IBV_WC_WR_FLUSH_ERR);
    cq_expect(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    end_await_state(&p.a, IBV_QPS_ERR);
    end_close(&p.a);
    memory_free(&p.b.mem);
    REQUIRE_OK(ibv_destroy_cq(p.b.send_cq));
    REQUIRE_OK(ibv_destroy_cq(p.b.recv_cq));
    device_close(&p.dev);
}

/* A peer in RESET does not answer either. */
static void peer_in_reset(void)
{
    struct pair p;
    PAIR(&p, .retry_cnt = 2, .timeout = 12);
    struct end_address to = end_address(&p.b);
    REQUIRE_OK(end_to_state(&p.b, IBV_QPS_RESET));
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &to, 0);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

static void wait_to_be_killed(int fd, void *arg)
{
    struct device d;
    struct end e;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    end_join(&e, fd);
    for (uint64_t i = 0; arg && i < 4; i++)
        recv_post(&e, i, 0, 100);
    meet(fd);
    for (;;)
        sleep_ms(1000);
}

/* A peer process is killed: sends, writes and reads to it end in "retry exceeded", and the rest is flushed. */
static void peer_process_killed(void)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    for (int i = 0; i < 3; i++) {
        struct peer peer = peer_start(wait_to_be_killed, "with receives");
        struct device d;
        struct end e;
        device_open(&d);
        end_open(&e, &d, &(struct end_options){.retry_cnt = 3, .timeout = 12});
        struct end_address to = end_join(&e, peer.fd);
        meet(peer.fd);
        struct op op = op_rdma(&e, opcodes[i], 1, 0, 100, &to, 0);
        op_post(&e, &op);
        cq_expect(e.send_cq, 1, IBV_WC_SUCCESS);
        recv_post(&e, 77, 0, 100);
        peer_kill(&peer);
        op_post(&e, &op);
        op.wr.wr_id = 2;
        op_post(&e, &op);
        cq_expect(e.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
        cq_expect(e.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
        cq_expect(e.recv_cq, 77, IBV_WC_WR_FLUSH_ERR);
        end_close(&e);
        device_close(&d);
    }
}

/* "Not ready" for ever does not outlast the peer: one that is gone does not say so any more. */
static void peer_killed_while_not_ready(void)
{
    struct peer peer = peer_start(wait_to_be_killed, NULL);
    struct device d;
    struct end e;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.rnr_retry = 7, .retry_cnt = 3, .timeout = 12});
    end_join(&e, peer.fd);
    meet(peer.fd);
    struct op op = op_make(&e, IBV_WR_SEND, 1, 0, 100);
    op_post(&e, &op);
    cq_expect_none(e.send_cq, 50);
    peer_kill(&peer);
    cq_expect(e.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    end_close(&e);
    device_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(rnr_no_retry),
    CASE(rnr_retries_are_counted),
    CASE(rnr_for_ever),
    CASE(rnr_count_starts_anew),
    CASE(rnr_of_write_with_immediate),
    CASE(rnr_error_flushes_the_rest),
    CASE(peer_queue_pair_gone),
    CASE(peer_in_reset),
    CASE(peer_process_killed),
    CASE(peer_killed_while_not_ready),
};
VERBS_MAIN("retry", cases)
