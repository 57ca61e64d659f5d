/* What softhca does on command: messages dropped, connections down, delays, overruns, failures of queue pairs. A
 * program of the verbs suite (tests/verbs), for softhca alone; faults_test.sh runs it and its neighbours. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"
#include "control.h"
#include "steps.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define GRH 40u

/* ---- drop ---- */

#define MESSAGES 40u
#define EVERY    4u

/* Sends numbered messages; those that arrive, in order, are all but every 4th. The last one is none of these. */
static void send_numbered(struct pair *p, struct ibv_ah *ah)
{
    const uint32_t head = ah ? GRH : 0;

    for (uint32_t i = 0; i < MESSAGES; i++)
        recv_post(&p->b, i, 32768 + i * 64, 8 + head);
    command("drop 4");
    for (uint32_t i = 1; i < MESSAGES; i++) {
        memcpy(p->a.mem.p + 64, &i, sizeof i);
        struct op op = op_make(&p->a, IBV_WR_SEND, i, 64, 8);
        if (ah)
            op_to_ud(&op, ah, p->b.qp->qp_num);
        op_post(&p->a, &op);
        cq_expect(p->a.send_cq, i, IBV_WC_SUCCESS);
    }
    for (uint32_t i = 1, taken = 0; i < MESSAGES; i++) {
        uint32_t seen;
        if (i % EVERY == 0)
            continue;
        cq_expect(p->b.recv_cq, taken, IBV_WC_SUCCESS);
        memcpy(&seen, p->b.mem.p + 32768 + taken++ * 64 + head, sizeof seen);
        REQUIRE_EQ(seen, i);
    }
    cq_expect_none(p->b.recv_cq, 20);
    REQUIRE_EQ(tally("dropped"), (MESSAGES - 1) / EVERY);
    REQUIRE_EQ(tally("datagrams"), ah ? (MESSAGES - 1) / EVERY : 0);
    command("clear");
}

static void drop_datagrams(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UD);
    struct end_address to = end_address(&p.b);
    struct ibv_ah *ah = end_ah(&p.a, &to);
    send_numbered(&p, ah);
    REQUIRE_OK(ibv_destroy_ah(ah));
    pair_close(&p);
}

static void drop_unreliable(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UC);
    send_numbered(&p, NULL);
    pair_close(&p);
}

/* What is lost is sent again: all messages arrive, once, in order. */
static void all_arrive(const char *fault)
{
    struct pair p;

    PAIR(&p, .timeout = 1, .retry_cnt = 7);
    command(fault);
    for (uint32_t i = 0; i < 60; i++)
        recv_post(&p.b, i, 32768 + i * 64, 8);
    for (uint32_t i = 0; i < 60; i++) {
        memcpy(p.a.mem.p + i * 64, &i, sizeof i);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, i * 64, 8);
        op_post(&p.a, &op);
    }
    for (uint32_t i = 0; i < 60; i++) {
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
        REQUIRE(memcmp(p.b.mem.p + 32768 + i * 64, &i, sizeof i) == 0);
    }
    cq_expect_none(p.b.recv_cq, 20);
    command("clear");
    pair_close(&p);
}

static void drop_reliable(void)
{
    all_arrive("drop 3");
}

static void acks_lost(void)
{
    all_arrive("acks 3");
}

/* A message has arrived, and the queue pair that it arrived at goes before the sender has heard of it: an error. */
static void acks_lost_and_gone(void)
{
    struct pair p;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    command("acks 1");
    recv_post(&p.b, 1, 32768, 8);
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 8);
    op_post(&p.a, &op);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    REQUIRE_OK(end_to_state(&p.b, IBV_QPS_ERR));
    cq_expect(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    command("clear");
    pair_close(&p);
}

/* ---- connections that carry nothing, receivers that are not ready ---- */

static void connections_down_and_up(void)
{
    struct pair p;

    PAIR(&p, .timeout = 14, .retry_cnt = 7);
    recv_post(&p.b, 1, 4096, 64);
    command("connections down");
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
    op_post(&p.a, &op);
    cq_expect_none(p.a.send_cq, 100);
    command("connections up");
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    pair_close(&p);
}

static void connections_down_for_good(void)
{
    struct pair p;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    unsigned long before = tally("cut"), writes = tally("cut-writes");
    command("connections down");
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    REQUIRE_EQ(tally("cut") - before, 1);
    REQUIRE_EQ(tally("cut-writes"), writes);
    REQUIRE_EQ(end_state(&p.a), IBV_QPS_ERR);
    command("connections up");
    pair_reconnect(&p);
    pair_exchange(&p, 3);
    pair_close(&p);
}

/* A burst of three is over with three retries, and not with two. */
static void burst_of_not_ready(void)
{
    for (uint8_t retries = 2; retries <= 3; retries++) {
        struct pair p;
        PAIR(&p, .rnr_retry = retries, .min_rnr_timer = 1);
        unsigned long before = tally("not-ready");
        recv_post(&p.b, 1, 4096, 64);
        command("rnr 3");
        struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, 2, retries == 3 ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR);
        REQUIRE_EQ(tally("not-ready") - before, 3);
        command("clear");
        pair_close(&p);
    }
}

/* Without a fault, too: a message that finds no receive is counted at each try, and arrives once there is one. */
static void not_ready_is_counted(void)
{
    struct pair p;
    struct ibv_wc wc;
    PAIR(&p, .rnr_retry = 7, .min_rnr_timer = 1);
    unsigned long before = tally("not-ready");
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
    op_post(&p.a, &op);
    while (tally("not-ready") < before + 2)
        REQUIRE_EQ(ibv_poll_cq(p.a.send_cq, 1, &wc), 0);
    recv_post(&p.b, 1, 4096, 64);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    unsigned long after = tally("not-ready");
    pair_exchange(&p, 3);
    REQUIRE_EQ(tally("not-ready"), after);
    pair_close(&p);
}

/* ---- delay: independent operations overtake each other, those of one queue pair do not ---- */

#define CONNECTIONS 8u
#define EACH        6u

static void delay_reorders(void)
{
    struct end a[CONNECTIONS], b[CONNECTIONS];
    uint64_t next[CONNECTIONS] = {0}, overtaken = 0, last = 0;
    struct device d;

    device_open(&d);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 256, NULL, NULL, 0);
    REQUIRE(cq != NULL);
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        end_open(&a[i], &d, &(struct end_options){.send_cq = cq, .recv_cq = cq});
        end_open(&b[i], &d, &(struct end_options){0});
        struct end_address to_a = end_address(&a[i]), to_b = end_address(&b[i]);
        end_connect(&a[i], &to_b);
        end_connect(&b[i], &to_a);
    }
    command("delay 3000");
    for (uint64_t k = 0; k < EACH; k++) {
        for (uint64_t i = 0; i < CONNECTIONS; i++) {
            struct end_address to = end_address(&b[i]);
            struct op op = op_rdma(&a[i], IBV_WR_RDMA_WRITE, k * CONNECTIONS + i, 0, 8, &to, 0);
            op_post(&a[i], &op);
        }
    }
    for (uint32_t n = 0; n < EACH * CONNECTIONS; n++) {
        struct ibv_wc wc;
        cq_next(cq, &wc);
        REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
        REQUIRE_EQ(wc.wr_id / CONNECTIONS, next[wc.wr_id % CONNECTIONS]++);
        overtaken += wc.wr_id < last;
        last = wc.wr_id;
    }
    REQUIRE_MSG(overtaken > 0, "all operations of %u connections complete in the order of posting", CONNECTIONS);
    command("clear");
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        end_close(&a[i]);
        end_close(&b[i]);
    }
    REQUIRE_OK(ibv_destroy_cq(cq));
    device_close(&d);
}

/* ---- overrun ---- */

static void overrun_on_command(void)
{
    struct ibv_wc wc;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    command("overrun 3");
    for (uint64_t i = 0; i < 4; i++) {
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, i, 0, 8, &to, 0);
        op_post(&p.a, &op);
    }
    cq_expect(p.a.send_cq, 0, IBV_WC_SUCCESS);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    REQUIRE(ibv_poll_cq(p.a.send_cq, 1, &wc) < 0);
    expect_event(&p.dev, IBV_EVENT_CQ_ERR);
    pair_close(&p);
}

/* ---- completions that come late ---- */

static void stall_on_command(void)
{
    struct timespec begin, end;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    command("stall 2");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t i = 0; i < 4; i++) {
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, i, 0, 8, &to, 0);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
    REQUIRE_MSG(ms >= 40, "four completions in %.1f ms, of which two take 20 ms", ms);
    command("clear");
    pair_close(&p);
}

/* ---- lines of a write that come in any order ---- */

#define TORN_BYTES 1000u /* from a byte that begins no line, to one that ends none */
#define TORN_AT    13u

static void *write_torn(void *arg)
{
    struct pair *p = arg;
    struct end_address to = end_address(&p->b);
    struct op op = op_rdma(&p->a, IBV_WR_RDMA_WRITE, 1, 0, TORN_BYTES, &to, TORN_AT);

    op_post(&p->a, &op);
    return NULL;
}

/* Until the last byte is there; whether the first was missing then. */
static bool last_before_first(const volatile uint8_t *b, uint8_t value)
{
    while (b[TORN_BYTES - 1] != value)
        ;
    return b[0] != value;
}

/* In some write the last byte comes before the first; whatever the order, all bytes are there when it has completed,
 * and none beside them. */
static void torn_on_command(void)
{
    unsigned torn = 0;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    REQUIRE_EQ(ibv_query_qp_data_in_order(p.b.qp, IBV_WR_RDMA_WRITE, 0), 1);
    command("torn 2000");
    REQUIRE_EQ(ibv_query_qp_data_in_order(p.b.qp, IBV_WR_RDMA_WRITE, 0), 0);
    memset(p.b.mem.p, 0, 2 * TORN_BYTES);
    for (uint32_t i = 0; i < 40 || (torn == 0 && i < 5000); i++) {
        const uint8_t value = (uint8_t)(1 + i % 255);
        pthread_t writer;
        memset(p.a.mem.p, value, TORN_BYTES);
        REQUIRE_EQ(pthread_create(&writer, NULL, write_torn, &p), 0);
        torn += last_before_first(p.b.mem.p + TORN_AT, value);
        REQUIRE_EQ(pthread_join(writer, NULL), 0);
        cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
        REQUIRE_EQ(p.b.mem.p[TORN_AT - 1], 0);
        REQUIRE_EQ(p.b.mem.p[TORN_AT + TORN_BYTES], 0);
        for (uint32_t k = 0; k < TORN_BYTES; k++)
            REQUIRE_EQ(p.b.mem.p[TORN_AT + k], value);
    }
    REQUIRE(torn > 0);
    command("clear");
    REQUIRE_EQ(ibv_query_qp_data_in_order(p.b.qp, IBV_WR_RDMA_WRITE, 0), 1);
    pair_close(&p);
}

/* ---- datagrams and their queue pairs ---- */

/* The second fails, what is posted behind it comes back; after a way back to RTS it goes on. */
static void datagram_fails(void)
{
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UD);
    struct end_address to = end_address(&p.b);
    struct ibv_ah *ah = end_ah(&p.a, &to);
    for (uint32_t i = 0; i < 4; i++)
        recv_post(&p.b, i, 32768 + i * 64, 8 + GRH);
    command("datagram 2");
    for (uint64_t i = 0; i < 3; i++)
        send_datagram(&p, ah, i);
    cq_expect(p.a.send_cq, 0, IBV_WC_SUCCESS);
    cq_expect(p.a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
    cq_expect(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    REQUIRE_EQ(end_state(&p.a), IBV_QPS_SQE);
    REQUIRE_OK(ibv_modify_qp(p.a.qp, &rts, IBV_QP_STATE));
    send_datagram(&p, ah, 3);
    cq_expect(p.a.send_cq, 3, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 0, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    cq_expect_none(p.b.recv_cq, 20);
    REQUIRE_OK(ibv_destroy_ah(ah));
    pair_close(&p);
}

static void queue_pair_fails(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UD);
    struct end_address to = end_address(&p.b);
    struct ibv_ah *ah = end_ah(&p.a, &to);
    recv_post(&p.a, 7, 32768, 8 + GRH);
    command("fatal 1");
    send_datagram(&p, ah, 1);
    cq_expect(p.a.send_cq, 1, IBV_WC_WR_FLUSH_ERR);
    cq_expect(p.a.recv_cq, 7, IBV_WC_WR_FLUSH_ERR);
    REQUIRE_EQ(end_state(&p.a), IBV_QPS_ERR);
    expect_event(&p.dev, IBV_EVENT_QP_FATAL);
    REQUIRE_OK(ibv_destroy_ah(ah));
    pair_close(&p);
}

/* The device looks for the handle when it sends, which is later. Nor is one lost that a reset or the end of the queue
 * pair finds still held. */
static void handle_destroyed_too_early(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UD);
    struct end_address to = end_address(&p.b);
    command("delay 1000000");
    struct ibv_ah *ah = end_ah(&p.a, &to);
    send_datagram(&p, ah, 1);
    REQUIRE_OK(ibv_destroy_ah(ah));
    cq_expect(p.a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_RESET));
    end_connect(&p.a, &to);
    ah = end_ah(&p.a, &to);
    send_datagram(&p, ah, 2);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_RESET));
    REQUIRE_OK(ibv_destroy_ah(ah));
    command("clear");
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(drop_datagrams),
    CASE(drop_unreliable),
    CASE(drop_reliable),
    CASE(acks_lost),
    CASE(acks_lost_and_gone),
    CASE(connections_down_and_up),
    CASE(connections_down_for_good),
    CASE(burst_of_not_ready),
    CASE(not_ready_is_counted),
    CASE(delay_reorders),
    CASE(overrun_on_command),
    CASE(stall_on_command),
    CASE(torn_on_command),
    CASE(datagram_fails),
    CASE(queue_pair_fails),
    CASE(handle_destroyed_too_early),
};
VERBS_MAIN("faults", cases)
