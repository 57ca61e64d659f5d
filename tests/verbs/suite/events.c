/* Asynchronous events as a file descriptor, and who gets which. IBA 11.6.3; man ibv_get_async_event. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

static void none_at_first(void)
{
    struct pair p;
    struct ibv_async_event ev;
    PAIR(&p, .type = IBV_QPT_RC);
    event_expect_none(p.dev.ctx, 20);
    REQUIRE_OK(fcntl(p.dev.ctx->async_fd, F_SETFL, O_NONBLOCK));
    errno = 0;
    REQUIRE_EQ(ibv_get_async_event(p.dev.ctx, &ev), -1);
    REQUIRE_EQ(errno, EAGAIN);
    pair_close(&p);
}

/* IBA 9.9, 11.6.3: the responder that refuses an access tells of it; the requester has its completion. */
static void access_error(void)
{
    struct pair p;
    struct ibv_async_event ev;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    to.rkey ^= 0x77000000;
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &to, 0);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    event_next(p.dev.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_QP_ACCESS_ERR);
    REQUIRE(ev.element.qp == p.b.qp);
    ibv_ack_async_event(&ev);
    event_expect_none(p.dev.ctx, 20);
    pair_close(&p);
}

/* IBA 11.6.3: a message that arrives in RTR makes "communication established". */
static void communication_established(void)
{
    struct pair p;
    struct ibv_async_event ev;
    device_open(&p.dev);
    end_open(&p.a, &p.dev, &(struct end_options){0});
    end_open(&p.b, &p.dev, &(struct end_options){0});
    struct end_address a = end_address(&p.a), b = end_address(&p.b);
    REQUIRE_OK(end_to_init(&p.b, 0));
    REQUIRE_OK(end_to_rtr(&p.b, &a, 0));
    end_connect(&p.a, &b);
    recv_post(&p.b, 1, 0, 8);
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 8);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    event_next(p.dev.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_COMM_EST);
    REQUIRE(ev.element.qp == p.b.qp);
    ibv_ack_async_event(&ev);
    pair_close(&p);
}

/* A completion queue that has overrun: the event that every device has. */
struct overrun {
    struct device dev;
    struct ibv_cq *cq;
    struct end e;
};

static void overrun_open(struct overrun *o)
{
    device_open(&o->dev);
    o->cq = ibv_create_cq(o->dev.ctx, 4, NULL, NULL, 0);
    REQUIRE(o->cq != NULL);
    uint32_t n = (uint32_t)o->cq->cqe + 4;
    end_open(&o->e, &o->dev, &(struct end_options){.recv_cq = o->cq, .recv_wr = n});
    REQUIRE_OK(end_to_init(&o->e, 0));
    for (uint64_t i = 0; i < n; i++)
        recv_post(&o->e, i, 0, 8);
    REQUIRE_OK(end_to_state(&o->e, IBV_QPS_ERR));
}

/* Two contexts of one process: an event goes to the one that owns the object. */
static void to_the_owner(void)
{
    struct overrun o;
    struct device other;
    struct ibv_async_event ev;
    device_open(&other);
    overrun_open(&o);
    event_next(o.dev.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    REQUIRE(ev.element.cq == o.cq);
    ibv_ack_async_event(&ev);
    event_expect_none(other.ctx, 20);
    end_close(&o.e);
    REQUIRE_OK(ibv_destroy_cq(o.cq));
    device_close(&o.dev);
    device_close(&other);
}

/* man ibv_get_async_event: destroying an object waits until its events have been acknowledged. */
static void *acknowledge_later(void *ev)
{
    sleep_ms(150);
    ibv_ack_async_event(ev);
    return NULL;
}

static void destroy_waits_for_acknowledgement(void)
{
    struct overrun o;
    struct ibv_async_event ev;
    pthread_t thread;
    overrun_open(&o);
    do { /* the queue pair may have an event as well */
        event_next(o.dev.ctx, &ev);
        if (ev.event_type != IBV_EVENT_CQ_ERR)
            ibv_ack_async_event(&ev);
    } while (ev.event_type != IBV_EVENT_CQ_ERR);
    end_close(&o.e);
    double start = now();
    REQUIRE_OK(pthread_create(&thread, NULL, acknowledge_later, &ev));
    REQUIRE_OK(ibv_destroy_cq(o.cq));
    REQUIRE(now() - start >= 0.14);
    REQUIRE_OK(pthread_join(thread, NULL));
    device_close(&o.dev);
}

/* An event that nobody fetched goes with its object, which can be destroyed. */
static void unfetched_goes_with_the_object(void)
{
    struct overrun o;
    struct pollfd fd;
    overrun_open(&o);
    fd = (struct pollfd){.fd = o.dev.ctx->async_fd, .events = POLLIN};
    REQUIRE_EQ(poll(&fd, 1, (int)(time_limit() * 1000)), 1);
    end_close(&o.e);
    REQUIRE_OK(ibv_destroy_cq(o.cq));
    event_expect_none(o.dev.ctx, 20);
    device_close(&o.dev);
}

static const struct verbs_case cases[] = {
    CASE(none_at_first),
    CASE(access_error),
    CASE(communication_established),
    CASE(to_the_owner),
    CASE(destroy_waits_for_acknowledgement),
    CASE(unfetched_goes_with_the_object),
};
VERBS_MAIN("events", cases)
