/* What softhca does on command, and what only softhca promises: faults, limits, ports and devices that go away,
 * registered pages that go away. A program of the verbs suite (tests/verbs), for softhca alone; faults_test.sh runs it.
 */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"
#include "control.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRH 40u

static void expect_event(struct device *d, enum ibv_event_type what)
{
    struct ibv_async_event ev;

    event_next(d->ctx, &ev);
    REQUIRE_EQ(ev.event_type, what);
    ibv_ack_async_event(&ev);
}

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
    command("connections down");
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
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
        recv_post(&p.b, 1, 4096, 64);
        command("rnr 3");
        struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, 2, retries == 3 ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR);
        command("clear");
        pair_close(&p);
    }
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

/* ---- datagrams and their queue pairs ---- */

static void send_datagram(struct pair *p, struct ibv_ah *ah, uint64_t id)
{
    struct op op = op_make(&p->a, IBV_WR_SEND, id, 64, 8);

    op_to_ud(&op, ah, p->b.qp->qp_num);
    op_post(&p->a, &op);
}

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

/* ---- completion queues that stay as they are ---- */

static void resize_as_set(void)
{
    const char *set = getenv("SOFTHCA_RESIZE");
    bool can = !set || strcmp(set, "no") != 0;
    struct device d;

    device_open(&d);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 16, NULL, NULL, 0);
    REQUIRE(cq != NULL);
    REQUIRE_EQ(ibv_resize_cq(cq, 64), can ? 0 : EOPNOTSUPP);
    REQUIRE_EQ(cq->cqe, can ? 64 : 16);
    REQUIRE_OK(ibv_destroy_cq(cq));
    device_close(&d);
}

/* ---- a device without datagrams, one with several partition keys ---- */

static void device_as_set(void)
{
    const char *datagrams = getenv("SOFTHCA_UD"), *keys = getenv("SOFTHCA_PKEYS");
    bool none = datagrams && strcmp(datagrams, "no") == 0;
    int n = keys ? atoi(keys) : 1;
    struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_UD,
                                 .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct device d;
    __be16 key = 0;

    device_open(&d);
    a.send_cq = a.recv_cq = ibv_create_cq(d.ctx, 16, NULL, NULL, 0);
    REQUIRE(a.send_cq != NULL);
    errno = 0;
    struct ibv_qp *qp = ibv_create_qp(d.pd, &a);
    REQUIRE_EQ(qp == NULL, none);
    REQUIRE_EQ(errno, none ? EOPNOTSUPP : 0);
    REQUIRE_EQ(d.port.pkey_tbl_len, n);
    for (int i = 0; i < n; i++) {
        REQUIRE_OK(ibv_query_pkey(d.ctx, d.port_num, i, &key));
        REQUIRE_EQ(be16toh(key), 0xffff - i);
        REQUIRE_EQ(ibv_get_pkey_index(d.ctx, d.port_num, key), i);
    }
    REQUIRE_FAILS(ibv_query_pkey(d.ctx, d.port_num, n, &key));
    REQUIRE_EQ(ibv_get_pkey_index(d.ctx, d.port_num, htobe16(1)), -1);
    if (qp)
        REQUIRE_OK(ibv_destroy_qp(qp));
    REQUIRE_OK(ibv_destroy_cq(a.send_cq));
    device_close(&d);
}

/* ---- the Nth creation ---- */

static void *make(struct device *d, struct end *e, int kind)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr qp = {
        .send_cq = e->send_cq, .recv_cq = e->recv_cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};

    errno = 0;
    switch (kind) {
    case 0:
        return ibv_create_qp(d->pd, &qp);
    case 1:
        return ibv_reg_mr(d->pd, e->mem.p, 64, IBV_ACCESS_LOCAL_WRITE);
    case 2:
        return ibv_create_cq(d->ctx, 4, NULL, NULL, 0);
    case 3:
        return ibv_create_srq(d->pd, &srq);
    default:
        return ibv_alloc_pd(d->ctx);
    }
}

static void unmake(void *object, int kind)
{
    switch (kind) {
    case 0:
        REQUIRE_OK(ibv_destroy_qp(object));
        break;
    case 1:
        REQUIRE_OK(ibv_dereg_mr(object));
        break;
    case 2:
        REQUIRE_OK(ibv_destroy_cq(object));
        break;
    case 3:
        REQUIRE_OK(ibv_destroy_srq(object));
        break;
    default:
        REQUIRE_OK(ibv_dealloc_pd(object));
    }
}

static void nth_creation_fails(void)
{
    static const char *const commands[] = {"qp 3", "mr 3", "cq 3", "srq 3", "pd 3"};
    struct device d;
    struct end e;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    for (int kind = 0; kind < 5; kind++) {
        command(commands[kind]);
        for (int i = 1; i <= 4; i++) {
            void *object = make(&d, &e, kind);
            REQUIRE_MSG(i == 3 ? !object && errno == ENOMEM : object != NULL, "%s: creation %d: %s", commands[kind], i,
                        strerror(errno));
            if (object)
                unmake(object, kind);
        }
    }
    end_close(&e);
    device_close(&d);
}

/* ---- limits: faults_test.sh sets small ones ---- */

/* Creates until it fails, which has to be after `most` with ENOMEM; `there` exist already. */
static void reaches_limit(struct device *d, struct end *e, int kind, int there, int most)
{
    void *object[64];
    int n = 0;

    if (most > 32)
        return; /* not set */
    while (n < 64 && (object[n] = make(d, e, kind)) != NULL)
        n++;
    REQUIRE_EQ(errno, ENOMEM);
    REQUIRE_EQ(n + there, most);
    while (n > 0)
        unmake(object[--n], kind);
}

static void limits_hold(void)
{
    const char *memlock = getenv("SOFTHCA_MEMLOCK");
    struct ibv_device_attr attr;
    struct device d;
    struct end e;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    REQUIRE_OK(ibv_query_device(d.ctx, &attr));
    reaches_limit(&d, &e, 0, 1, attr.max_qp);
    reaches_limit(&d, &e, 1, 1, attr.max_mr);
    reaches_limit(&d, &e, 2, 2, attr.max_cq);
    reaches_limit(&d, &e, 3, 0, attr.max_srq);
    reaches_limit(&d, &e, 4, 1, attr.max_pd);
    if (memlock) {
        size_t most = strtoul(memlock, NULL, 0), left = most - e.mem.size;
        char *memory = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        REQUIRE(ibv_reg_mr(d.pd, memory, left + 1, IBV_ACCESS_LOCAL_WRITE) == NULL);
        REQUIRE_EQ(errno, ENOMEM);
        struct ibv_mr *mr = ibv_reg_mr(d.pd, memory, left, IBV_ACCESS_LOCAL_WRITE);
        REQUIRE(mr != NULL);
        REQUIRE_OK(ibv_dereg_mr(mr));
        munmap(memory, most);
    }
    end_close(&e);
    device_close(&d);
}

/* ---- ports and devices that go away ---- */

static void port_down_under_traffic(void)
{
    struct ibv_port_attr port;
    struct pair p;

    PAIR(&p, .timeout = 14, .retry_cnt = 7);
    for (uint64_t i = 0; i < 20; i++)
        recv_post(&p.b, i, 4096 + i * 64, 64);
    for (uint64_t i = 0; i < 20; i++) {
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 64);
        if (i == 10)
            command("port soft0 1 down");
        op_post(&p.a, &op);
    }
    expect_event(&p.dev, IBV_EVENT_PORT_ERR);
    REQUIRE_OK(ibv_query_port(p.dev.ctx, 1, &port));
    REQUIRE_EQ(port.state, IBV_PORT_DOWN);
    for (uint64_t i = 0; i < 10; i++)
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    cq_expect_none(p.a.send_cq, 100);
    command("port soft0 1 up");
    expect_event(&p.dev, IBV_EVENT_PORT_ACTIVE);
    for (uint64_t i = 0; i < 20; i++) {
        if (i >= 10)
            cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

static void port_down_for_good(void)
{
    struct pair p;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    command("port soft0 1 down");
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

/* A port comes up with another address: it says so, what is sent to the old one is lost, a new connection takes the new
 * one. */
static void another_address(void)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct pair p;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    pair_exchange(&p, 1);
    command("port soft0 1 down");
    expect_event(&p.dev, IBV_EVENT_PORT_ERR);
    command("address soft0 1 3");
    expect_event(&p.dev, p.dev.global ? IBV_EVENT_GID_CHANGE : IBV_EVENT_LID_CHANGE);
    if (!p.dev.global)
        expect_event(&p.dev, IBV_EVENT_CLIENT_REREGISTER);
    command("port soft0 1 up");
    expect_event(&p.dev, IBV_EVENT_PORT_ACTIVE);
    REQUIRE_OK(ibv_query_port(p.dev.ctx, 1, &port));
    REQUIRE_OK(ibv_query_gid(p.dev.ctx, 1, p.dev.gid_index, &gid));
    REQUIRE_EQ(port.lid, p.dev.global ? 0 : p.dev.port.lid + 48);
    REQUIRE_EQ(memcmp(&gid, &p.dev.gid, sizeof gid) != 0, p.dev.global);
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    pair_exchange(&p, 2);
    pair_close(&p);
}

/* Datagrams, to what was the address and to what is. */
static void datagrams_to_another_address(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_UD);
    struct end_address was = end_address(&p.b);
    command("address soft0 1 199");
    struct device now;
    device_open(&now);
    struct end_address is = was;
    is.lid = now.port.lid;
    is.gid = now.gid;
    device_close(&now);
    for (uint64_t i = 0; i < 2; i++) {
        struct ibv_ah *ah = end_ah(&p.a, i ? &is : &was);
        recv_post(&p.b, i, 4096 + i * 64, 8 + GRH);
        send_datagram(&p, ah, i);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
        if (i)
            cq_expect(p.b.recv_cq, 0, IBV_WC_SUCCESS);
        else
            cq_expect_none(p.b.recv_cq, 20);
        REQUIRE_OK(ibv_destroy_ah(ah));
    }
    pair_close(&p);
}

static void device_removed(void)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct pair p;
    int n;

    PAIR(&p, .timeout = 8, .retry_cnt = 2);
    command("device soft0 gone");
    expect_event(&p.dev, IBV_EVENT_DEVICE_FATAL);
    REQUIRE_ERR(ibv_query_device(p.dev.ctx, &attr), EIO);
    REQUIRE_ERR(ibv_query_port(p.dev.ctx, 1, &port), EIO);
    for (int kind = 0; kind < 5; kind++) {
        REQUIRE(make(&p.dev, &p.a, kind) == NULL);
        REQUIRE_EQ(errno, EIO);
    }
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 64);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    struct ibv_device **list = ibv_get_device_list(&n);
    for (int i = 0; i < n; i++)
        REQUIRE_MSG(strcmp(ibv_get_device_name(list[i]), "soft0") != 0, "soft0 is gone, and listed");
    ibv_free_device_list(list);
    pair_close(&p); /* what there is can be given back */
}

/* ---- several devices and ports: faults_test.sh sets two of each ---- */

#define RAILS 4

/* Each port of each device, with itself and at the same time; when one goes down, the others go on. */
static void rails(void)
{
    struct device d[RAILS];
    struct pair p[RAILS];

    for (int i = 0; i < RAILS; i++) {
        REQUIRE_OK(setenv("VERBS_DEVICE", i / 2 ? "soft1" : "soft0", 1));
        REQUIRE_OK(setenv("VERBS_PORT", i % 2 ? "2" : "1", 1));
        PAIR(&p[i], .timeout = 8, .retry_cnt = 2);
        d[i] = p[i].dev;
        for (int k = 0; k < i; k++)
            REQUIRE_MSG(memcmp(&d[i].gid, &d[k].gid, sizeof d[i].gid) != 0, "rails %d and %d have one GID", i, k);
    }
    for (int i = 0; i < RAILS; i++)
        pair_exchange(&p[i], (uint32_t)i);
    command("port soft1 1 down");
    for (int i = 0; i < RAILS; i++) {
        if (i != 2) {
            pair_exchange(&p[i], 10 + (uint32_t)i);
            continue;
        }
        struct op op = op_make(&p[i].a, IBV_WR_SEND, 1, 0, 64);
        op_post(&p[i].a, &op);
        cq_expect(p[i].a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
        expect_event(&p[i].dev, IBV_EVENT_PORT_ERR);
    }
    event_expect_none(p[0].dev.ctx, 20);
    for (int i = 0; i < RAILS; i++)
        pair_close(&p[i]);
}

/* From one rail to another: device soft0, port 1, to device soft1, port 2. */
static void rails_meet(void)
{
    struct pair p;
    struct device other;

    device_open(&p.dev);
    REQUIRE_OK(setenv("VERBS_DEVICE", "soft1", 1));
    REQUIRE_OK(setenv("VERBS_PORT", "2", 1));
    device_open(&other);
    end_open(&p.a, &p.dev, &(struct end_options){0});
    end_open(&p.b, &other, &(struct end_options){0});
    struct end_address a = end_address(&p.a), b = end_address(&p.b);
    end_connect(&p.a, &b);
    end_connect(&p.b, &a);
    pair_exchange(&p, 1);
    end_close(&p.a);
    end_close(&p.b);
    device_close(&other);
    device_close(&p.dev);
}

/* ---- registered pages that go away ---- */

/* What is said on stderr while fn runs. */
static void heard(void (*fn)(struct pair *p, char *at), struct pair *p, char *at, char *text, size_t room)
{
    int saved = dup(2), file = memfd_create("stderr", MFD_CLOEXEC);
    ssize_t n;

    REQUIRE(saved >= 0 && file >= 0 && dup2(file, 2) == 2);
    fn(p, at);
    REQUIRE(dup2(saved, 2) == 2);
    n = pread(file, text, room - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(file);
    close(saved);
}

/* Other pages in their place: an adapter would still have the old ones. */
static void put_others_there(char *at)
{
    REQUIRE(mmap(at, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    memset(at, 0x33, 8192);
}

static struct ibv_mr *stale_mr;

static void send_stale(struct pair *p, char *at)
{
    recv_post(&p->b, 1, 0, 64);
    struct op op = op_make(&p->a, IBV_WR_SEND, 2, 0, 64);
    op.sge[0].addr = (uintptr_t)at;
    op.sge[0].lkey = stale_mr->lkey;
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_LOC_PROT_ERR);
}

static void write_to_stale(struct pair *p, char *at)
{
    struct end_address to = end_address(&p->b);
    to.addr = (uintptr_t)at;
    to.rkey = stale_mr->rkey;
    struct op op = op_rdma(&p->a, IBV_WR_RDMA_WRITE, 2, 0, 64, &to, 0);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

static void stale(void (*use)(struct pair *p, char *at))
{
    struct pair p;
    struct memory m;
    char said[2000];

    PAIR(&p, .type = IBV_QPT_RC);
    memory_make(&m, p.dev.pd, 8192, ACCESS_ALL);
    stale_mr = m.mr;
    char *at = (char *)m.p;
    put_others_there(at);
    heard(use, &p, at, said, sizeof said);
    REQUIRE_MSG(strstr(said, "registered memory was used after it had been unmapped") != NULL, "it said: %s", said);
    for (int i = 0; i < 64; i++)
        REQUIRE_EQ(at[i], 0x33);
    memory_free(&m);
    pair_close(&p);
}

static void stale_send_is_refused(void)
{
    stale(send_stale);
}
static void stale_target_is_refused(void)
{
    stale(write_to_stale);
}

/* ---- killed in the middle of a copy ---- */

#define LARGE (512u << 10)

static void write_for_ever(int fd, void *arg)
{
    struct device d;
    struct end e;

    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.memory = LARGE});
    struct end_address to = end_join(&e, fd);
    for (uint64_t i = 0;; i++) {
        struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, i, 0, LARGE, &to, 0);
        op_post(&e, &op);
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
    }
}

/* How often this thread has slept. */
static long sleeps(void)
{
    struct rusage u;

    REQUIRE_OK(getrusage(RUSAGE_THREAD, &u));
    return u.ru_nvcsw;
}

/* A process that is killed while it copies to us never says that it is through. That is known at once from its end,
 * without the sleeps of somebody who waits two seconds for a process that lives. */
static void killed_in_the_middle(void)
{
    for (int i = 0; i < 4; i++) {
        struct peer peer = peer_start(write_for_ever, NULL);
        struct device d;
        struct end e;
        device_open(&d);
        end_open(&e, &d, &(struct end_options){.memory = LARGE});
        end_join(&e, peer.fd);
        sleep_ms(20);
        peer_kill(&peer);
        long before = sleeps();
        REQUIRE_OK(end_to_state(&e, IBV_QPS_ERR));
        REQUIRE_MSG(sleeps() - before < 50, "slept %ld times for a process that has ended", sleeps() - before);
        end_close(&e);
        device_close(&d);
    }
}

static double processor_time(void)
{
    struct timespec t;

    REQUIRE_OK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A child that was forked while somebody was connected to the control socket has that connection, too. When it is over
 * it is over: the thread that serves it sleeps. */
static void forked_while_connected(void)
{
    struct device d;
    pid_t child;
    double begin;
    int fd;

    device_open(&d);
    fd = connect_self();
    command_by(fd, "clear");
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        close(fd); /* that of who has connected; what is left is the device's end */
        pause();
        _exit(0);
    }
    close(fd);
    sleep_ms(50);
    begin = processor_time();
    sleep_ms(1000);
    begin = processor_time() - begin;
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, NULL, 0) == child);
    REQUIRE_MSG(begin < 0.05, "%.3f s of processor time were spent asleep", begin);
    device_close(&d);
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
    CASE(delay_reorders),
    CASE(overrun_on_command),
    CASE(stall_on_command),
    CASE(datagram_fails),
    CASE(queue_pair_fails),
    CASE(handle_destroyed_too_early),
    CASE(resize_as_set),
    CASE(device_as_set),
    CASE(nth_creation_fails),
    CASE(limits_hold),
    CASE(port_down_under_traffic),
    CASE(port_down_for_good),
    CASE(another_address),
    CASE(datagrams_to_another_address),
    CASE(device_removed),
    CASE(killed_in_the_middle),
    CASE(forked_while_connected),
    CASE(rails),
    CASE(rails_meet),
    CASE(stale_send_is_refused),
    CASE(stale_target_is_refused),
};
VERBS_MAIN("faults", cases)
