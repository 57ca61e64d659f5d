/* Shared receive queues: many queue pairs take receives from one. IBA 10.2.9, 11.2 (create, query, modify SRQ); man
 * ibv_create_srq, ibv_modify_srq, ibv_query_srq, ibv_post_srq_recv. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <fcntl.h>

struct shared {
    struct device dev;
    struct ibv_srq *srq;
    struct ibv_cq *cq; /* of all receives */
    struct memory mem; /* 64 places of 1 KiB */
};

static void shared_open(struct shared *s, uint32_t max_wr)
{
    struct ibv_srq_init_attr init = {.srq_context = s, .attr = {.max_wr = max_wr, .max_sge = 2}};
    device_open(&s->dev);
    s->srq = ibv_create_srq(s->dev.pd, &init);
    REQUIRE(s->srq != NULL);
    REQUIRE(init.attr.max_wr >= max_wr && init.attr.max_sge >= 2);
    REQUIRE(s->srq->srq_context == s && s->srq->pd == s->dev.pd);
    s->cq = ibv_create_cq(s->dev.ctx, 256, NULL, NULL, 0);
    REQUIRE(s->cq != NULL);
    memory_make(&s->mem, s->dev.pd, 65536, ACCESS_ALL);
}

static void shared_close(struct shared *s)
{
    REQUIRE_OK(ibv_destroy_srq(s->srq));
    REQUIRE_OK(ibv_destroy_cq(s->cq));
    memory_free(&s->mem);
    device_close(&s->dev);
}

static void post(struct shared *s, uint64_t id)
{
    srq_post(s->srq, id, &s->mem, id % 64 * 1024, 1024);
}

/* A sender and, at the other side, a queue pair on the SRQ. */
static void link_open(struct shared *s, struct end *from, struct end *to)
{
    end_open(from, &s->dev, &(struct end_options){0});
    end_open(to, &s->dev, &(struct end_options){.srq = s->srq, .recv_cq = s->cq});
    struct end_address a = end_address(from), b = end_address(to);
    end_connect(from, &b);
    end_connect(to, &a);
}

static void many_queue_pairs(void)
{
    enum { N = 8 };
    struct shared s;
    struct end from[N], to[N];
    struct ibv_wc wc;
    int received[N] = {0};
    shared_open(&s, 64);
    for (int i = 0; i < N; i++)
        link_open(&s, &from[i], &to[i]);
    for (uint64_t i = 0; i < 64; i++)
        post(&s, i);
    for (uint32_t k = 0; k < 8; k++)
        for (uint32_t i = 0; i < N; i++) {
            pattern_fill(from[i].mem.p + k * 512, 100 + i, i * 8 + k);
            struct op op = op_make(&from[i], IBV_WR_SEND, k, k * 512, 100 + i);
            op_post(&from[i], &op);
        }
    bool used[64] = {false};
    for (int n = 0; n < 64; n++) {
        cq_next(s.cq, &wc);
        REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
        REQUIRE_MSG(wc.wr_id < 64 && !used[wc.wr_id], "receive %d was used twice", (int)wc.wr_id);
        used[wc.wr_id] = true;
        uint32_t i = 0;
        while (i < N && to[i].qp->qp_num != wc.qp_num)
            i++;
        REQUIRE_MSG(i < N, "qp_num %u is none of ours", wc.qp_num);
        REQUIRE_EQ(wc.byte_len, 100 + i); /* order within each connection is kept */
        pattern_check(s.mem.p + wc.wr_id * 1024, wc.byte_len, i * 8 + (uint32_t)received[i]++);
    }
    for (int i = 0; i < N; i++) {
        REQUIRE_EQ(received[i], 8);
        end_close(&to[i]);
        end_close(&from[i]);
    }
    shared_close(&s);
}

/* ibv_post_recv is not for a queue pair that has an SRQ. */
static void own_receive_refused(void)
{
    struct shared s;
    struct end from, to;
    shared_open(&s, 16);
    link_open(&s, &from, &to);
    struct ibv_sge sge = {(uintptr_t)to.mem.p, 8, to.mem.mr->lkey};
    REQUIRE_FAILS(recv_try(&to, 1, &sge, 1));
    end_close(&to);
    end_close(&from);
    shared_close(&s);
}

/* An empty SRQ is a receiver that is not ready. */
static void empty_is_not_ready(void)
{
    struct shared s;
    struct end from, to;
    shared_open(&s, 16);
    link_open(&s, &from, &to);
    struct op op = op_make(&from, IBV_WR_SEND, 1, 0, 8);
    op_post(&from, &op);
    cq_expect_none(from.send_cq, 50);
    post(&s, 2);
    cq_expect(from.send_cq, 1, IBV_WC_SUCCESS);
    cq_expect(s.cq, 2, IBV_WC_SUCCESS);
    end_close(&to);
    end_close(&from);
    shared_close(&s);
}

static void full_refuses(void)
{
    struct shared s;
    shared_open(&s, 16);
    struct ibv_srq_attr attr;
    REQUIRE_OK(ibv_query_srq(s.srq, &attr));
    REQUIRE(attr.max_wr >= 16 && attr.max_sge >= 2);
    REQUIRE_EQ(attr.srq_limit, 0);
    struct ibv_sge sge = {(uintptr_t)s.mem.p, 8, s.mem.mr->lkey};
    uint32_t n = 0;
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;
    while (n <= attr.max_wr && ibv_post_srq_recv(s.srq, &wr, &bad) == 0)
        n++;
    REQUIRE_EQ(n, attr.max_wr);
    REQUIRE(bad == &wr);
    wr.num_sge = (int)attr.max_sge + 1;
    REQUIRE_FAILS(ibv_post_srq_recv(s.srq, &wr, &bad));
    shared_close(&s);
}

static void limit_event(struct shared *s)
{
    struct ibv_async_event ev;
    event_next(s->dev.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    REQUIRE(ev.element.srq == s->srq);
    ibv_ack_async_event(&ev);
}

static void send_n(struct shared *s, struct end *from, int n)
{
    struct ibv_wc wc;
    for (int i = 0; i < n; i++) {
        struct op op = op_make(from, IBV_WR_SEND, 1, 0, 8);
        op_post(from, &op);
        cq_expect(from->send_cq, 1, IBV_WC_SUCCESS);
        cq_next(s->cq, &wc);
        REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
    }
}

/* The event comes once, when fewer than the limit are left; the limit is then 0 until it is set again. */
static void limit(void)
{
    struct shared s;
    struct end from, to;
    shared_open(&s, 16);
    link_open(&s, &from, &to);
    for (uint64_t i = 0; i < 10; i++)
        post(&s, i);
    struct ibv_srq_attr attr = {.srq_limit = 4};
    REQUIRE_OK(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT));
    REQUIRE_OK(ibv_query_srq(s.srq, &attr));
    REQUIRE_EQ(attr.srq_limit, 4);
    send_n(&s, &from, 6); /* 4 are left */
    event_expect_none(s.dev.ctx, 30);
    send_n(&s, &from, 1);
    limit_event(&s);
    REQUIRE_OK(ibv_query_srq(s.srq, &attr));
    REQUIRE_EQ(attr.srq_limit, 0);
    send_n(&s, &from, 2);
    event_expect_none(s.dev.ctx, 30); /* disarmed */
    for (uint64_t i = 0; i < 9; i++)
        post(&s, i);
    attr.srq_limit = 10;
    REQUIRE_OK(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT));
    send_n(&s, &from, 1); /* 9 are left */
    limit_event(&s);
    end_close(&to);
    end_close(&from);
    shared_close(&s);
}

/* man ibv_modify_srq, IBA 10.2.9: armed while fewer are posted, the event comes at once. */
static void limit_armed_below(void)
{
    struct shared s;
    shared_open(&s, 16);
    post(&s, 1);
    struct ibv_srq_attr attr = {.srq_limit = 5};
    REQUIRE_OK(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT));
    limit_event(&s);
    shared_close(&s);
}

static void limit_beyond_size_refused(void)
{
    struct shared s;
    shared_open(&s, 16);
    struct ibv_srq_attr attr;
    REQUIRE_OK(ibv_query_srq(s.srq, &attr));
    attr.srq_limit = attr.max_wr + 1;
    REQUIRE_FAILS(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT));
    shared_close(&s);
}

/* Where the device can, the queue grows and keeps what is posted; it does not shrink below that. */
static void resize(void)
{
    struct shared s;
    struct end from, to;
    shared_open(&s, 8);
    struct ibv_srq_attr attr = {.max_wr = 60};
    if (!(s.dev.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)) {
        REQUIRE_FAILS(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR));
        shared_close(&s);
        return;
    }
    link_open(&s, &from, &to);
    for (uint64_t i = 0; i < 6; i++)
        post(&s, i);
    REQUIRE_OK(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR));
    REQUIRE_OK(ibv_query_srq(s.srq, &attr));
    REQUIRE(attr.max_wr >= 60);
    for (uint64_t i = 6; i < 60; i++)
        post(&s, i);
    attr.max_wr = 1;
    REQUIRE_FAILS(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR));
    for (uint64_t i = 0; i < 60; i++) {
        struct op op = op_make(&from, IBV_WR_SEND, i, 0, 8);
        op_post(&from, &op);
        cq_expect(from.send_cq, i, IBV_WC_SUCCESS);
        cq_expect(s.cq, i, IBV_WC_SUCCESS);
    }
    end_close(&to);
    end_close(&from);
    shared_close(&s);
}

/* UD queue pairs share one as well. */
static void datagrams(void)
{
    struct shared s;
    struct end from, to;
    shared_open(&s, 16);
    end_open(&from, &s.dev, &(struct end_options){.type = IBV_QPT_UD});
    end_open(&to, &s.dev, &(struct end_options){.type = IBV_QPT_UD, .srq = s.srq, .recv_cq = s.cq});
    end_connect(&from, NULL);
    end_connect(&to, NULL);
    struct end_address b = end_address(&to);
    struct ibv_ah *ah = end_ah(&from, &b);
    post(&s, 5);
    pattern_fill(from.mem.p, 50, 1);
    struct op op = op_make(&from, IBV_WR_SEND, 1, 0, 50);
    op_to_ud(&op, ah, b.qpn);
    op_post(&from, &op);
    struct ibv_wc wc = cq_expect(s.cq, 5, IBV_WC_SUCCESS);
    REQUIRE_EQ(wc.byte_len, 90);
    REQUIRE_EQ(wc.qp_num, b.qpn);
    REQUIRE_EQ(wc.src_qp, from.qp->qp_num);
    pattern_check(s.mem.p + 5 * 1024 + 40, 50, 1);
    REQUIRE_OK(ibv_destroy_ah(ah));
    end_close(&to);
    end_close(&from);
    shared_close(&s);
}

/* One queue pair in the error state takes nothing away from the others. */
static void survives_an_error(void)
{
    struct shared s;
    struct end from[2], to[2];
    struct ibv_async_event ev;
    shared_open(&s, 16);
    REQUIRE_OK(fcntl(s.dev.ctx->async_fd, F_SETFL, O_NONBLOCK));
    link_open(&s, &from[0], &to[0]);
    link_open(&s, &from[1], &to[1]);
    for (uint64_t i = 0; i < 4; i++)
        post(&s, i);
    REQUIRE_OK(end_to_state(&to[0], IBV_QPS_ERR));
    send_n(&s, &from[1], 4);
    struct op op = op_make(&from[1], IBV_WR_SEND, 9, 0, 8); /* none was lost, none is left */
    op_post(&from[1], &op);
    cq_expect_none(s.cq, 20);
    post(&s, 4);
    cq_expect(s.cq, 4, IBV_WC_SUCCESS);
    while (ibv_get_async_event(s.dev.ctx, &ev) == 0) /* "last WQE reached", where the device tells */
        ibv_ack_async_event(&ev);
    for (int i = 0; i < 2; i++) {
        end_close(&to[i]);
        end_close(&from[i]);
    }
    shared_close(&s);
}

static const struct verbs_case cases[] = {
    CASE(many_queue_pairs),
    CASE(own_receive_refused),
    CASE(empty_is_not_ready),
    CASE(full_refuses),
    CASE(limit),
    CASE(limit_armed_below),
    CASE(limit_beyond_size_refused),
    CASE(resize),
    CASE(datagrams),
    CASE(survives_an_error),
};
VERBS_MAIN("srq", cases)
