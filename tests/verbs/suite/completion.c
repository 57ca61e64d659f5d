/* Completion queues and channels: sizes, overrun, resizing, notification. IBA 10.2.6, 11.4.2; man ibv_create_cq,
 * ibv_resize_cq, ibv_req_notify_cq, ibv_get_cq_event, ibv_poll_cq. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct channel_pair {
    struct pair p;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; /* b's receives, on the channel */
};

static void channel_open(struct channel_pair *c, struct end_options o)
{
    device_open(&c->p.dev);
    c->channel = ibv_create_comp_channel(c->p.dev.ctx);
    REQUIRE(c->channel != NULL);
    c->cq = ibv_create_cq(c->p.dev.ctx, 128, c, c->channel, 0);
    REQUIRE(c->cq != NULL && c->cq->cqe >= 128);
    end_open(&c->p.a, &c->p.dev, &o);
    o.recv_cq = c->cq;
    end_open(&c->p.b, &c->p.dev, &o);
    struct end_address a = end_address(&c->p.a), b = end_address(&c->p.b);
    end_connect(&c->p.a, &b);
    end_connect(&c->p.b, &a);
}

static void channel_close(struct channel_pair *c)
{
    end_close(&c->p.a);
    end_close(&c->p.b);
    REQUIRE_OK(ibv_destroy_cq(c->cq));
    REQUIRE_OK(ibv_destroy_comp_channel(c->channel));
    device_close(&c->p.dev);
}

static bool readable(const struct ibv_comp_channel *channel, double seconds)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    return poll(&fd, 1, (int)(seconds * 1000)) == 1;
}

static void take_event(struct channel_pair *c)
{
    struct ibv_cq *cq = NULL;
    void *context = NULL;
    REQUIRE(readable(c->channel, time_limit()));
    REQUIRE_OK(ibv_get_cq_event(c->channel, &cq, &context));
    REQUIRE(cq == c->cq && context == c);
    ibv_ack_cq_events(cq, 1);
}

static void message(struct channel_pair *c, uint64_t id, unsigned flags)
{
    recv_post(&c->p.b, id, 0, 64);
    struct op op = op_make(&c->p.a, IBV_WR_SEND, id, 0, 8);
    op.wr.send_flags |= flags;
    op_post(&c->p.a, &op);
    cq_expect(c->p.a.send_cq, id, IBV_WC_SUCCESS);
}

/* One event for each request of notification, however many completions come; none without a request. */
static void notification(void)
{
    struct channel_pair c;
    channel_open(&c, (struct end_options){0});
    message(&c, 1, 0);
    REQUIRE(!readable(c.channel, 0.03));
    cq_expect(c.cq, 1, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < 20; i++) {
        REQUIRE_OK(ibv_req_notify_cq(c.cq, 0));
        message(&c, 10, 0);
        message(&c, 11, 0);
        message(&c, 12, 0);
        take_event(&c);
        REQUIRE(!readable(c.channel, 0.001));
        for (uint64_t k = 10; k < 13; k++)
            cq_expect(c.cq, k, IBV_WC_SUCCESS);
    }
    REQUIRE(!readable(c.channel, 0.03));
    channel_close(&c);
}

/* Without solicitation no event; with it one. */
static void solicited_only(void)
{
    struct channel_pair c;
    channel_open(&c, (struct end_options){0});
    struct end_address to = end_address(&c.p.b);
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 1));
    message(&c, 1, 0);
    message(&c, 2, 0);
    REQUIRE(!readable(c.channel, 0.05));
    message(&c, 3, IBV_SEND_SOLICITED);
    take_event(&c);
    for (uint64_t i = 1; i < 4; i++)
        cq_expect(c.cq, i, IBV_WC_SUCCESS);
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 1)); /* a write with immediate can be solicited too */
    recv_post(&c.p.b, 4, 0, 0);
    struct op op = op_rdma(&c.p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 5, 0, 8, &to, 0);
    op.wr.send_flags |= IBV_SEND_SOLICITED;
    op_post(&c.p.a, &op);
    take_event(&c);
    cq_expect(c.cq, 4, IBV_WC_SUCCESS);
    channel_close(&c);
}

/* man ibv_req_notify_cq: an unsuccessful completion counts as a solicited one. */
static void error_is_solicited(void)
{
    struct channel_pair c;
    channel_open(&c, (struct end_options){0});
    recv_post(&c.p.b, 1, 0, 8);
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 1));
    REQUIRE_OK(end_to_state(&c.p.b, IBV_QPS_ERR));
    take_event(&c);
    cq_expect(c.cq, 1, IBV_WC_WR_FLUSH_ERR);
    channel_close(&c);
}

/* By the specification what was there before the request makes no event: that is why a program polls once more after it
 * asked. Some adapters make one at once. VERBS_EARLIER (none, event) says what is expected of this one; else either. */
static void earlier_completions(void)
{
    struct channel_pair c;
    const char *expected = getenv("VERBS_EARLIER");
    channel_open(&c, (struct end_options){0});
    message(&c, 1, 0);
    sleep_ms(20);
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 0));
    bool event = readable(c.channel, 0.05);
    REQUIRE(!expected || event == (strcmp(expected, "event") == 0));
    if (event) {
        take_event(&c);
        REQUIRE(!readable(c.channel, 0.03));
        cq_expect(c.cq, 1, IBV_WC_SUCCESS);
        REQUIRE_OK(ibv_req_notify_cq(c.cq, 0));
        REQUIRE(!readable(c.channel, 0.03));
    }
    message(&c, 2, 0);
    take_event(&c);
    if (!event)
        cq_expect(c.cq, 1, IBV_WC_SUCCESS);
    cq_expect(c.cq, 2, IBV_WC_SUCCESS);
    channel_close(&c);
}

static void nonblocking_channel(void)
{
    struct channel_pair c;
    struct ibv_cq *cq;
    void *context;
    channel_open(&c, (struct end_options){0});
    REQUIRE_OK(fcntl(c.channel->fd, F_SETFL, O_NONBLOCK));
    errno = 0;
    REQUIRE_EQ(ibv_get_cq_event(c.channel, &cq, &context), -1);
    REQUIRE_EQ(errno, EAGAIN);
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 0));
    message(&c, 1, 0);
    take_event(&c);
    cq_expect(c.cq, 1, IBV_WC_SUCCESS);
    channel_close(&c);
}

/* Several completion queues on one channel; the event says which. */
static void shared_channel(void)
{
    struct channel_pair c;
    struct ibv_cq *cq;
    void *context;
    channel_open(&c, (struct end_options){0});
    struct ibv_cq *others[3];
    for (int i = 0; i < 3; i++) {
        others[i] = ibv_create_cq(c.p.dev.ctx, 16, &others[i], c.channel, i % c.p.dev.ctx->num_comp_vectors);
        REQUIRE(others[i] != NULL);
        struct end e;
        end_open(&e, &c.p.dev, &(struct end_options){.recv_cq = others[i]});
        REQUIRE_OK(end_to_init(&e, 0));
        REQUIRE_OK(ibv_req_notify_cq(others[i], 0));
        recv_post(&e, 1, 0, 8);
        REQUIRE_OK(end_to_state(&e, IBV_QPS_ERR));
        REQUIRE(readable(c.channel, time_limit()));
        REQUIRE_OK(ibv_get_cq_event(c.channel, &cq, &context));
        REQUIRE(cq == others[i] && context == &others[i]);
        ibv_ack_cq_events(cq, 1);
        cq_expect(others[i], 1, IBV_WC_WR_FLUSH_ERR);
        end_close(&e);
    }
    for (int i = 0; i < 3; i++)
        REQUIRE_OK(ibv_destroy_cq(others[i]));
    channel_close(&c);
}

/* man ibv_get_cq_event: ibv_destroy_cq waits until every event has been acknowledged. */
static void *acknowledge_later(void *cq)
{
    sleep_ms(150);
    ibv_ack_cq_events(cq, 1);
    return NULL;
}

static void destroy_waits_for_acknowledgement(void)
{
    struct channel_pair c;
    struct ibv_cq *cq;
    void *context;
    pthread_t thread;
    channel_open(&c, (struct end_options){0});
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 0));
    message(&c, 1, 0);
    REQUIRE_OK(ibv_get_cq_event(c.channel, &cq, &context));
    end_close(&c.p.a);
    end_close(&c.p.b);
    double start = now();
    REQUIRE_OK(pthread_create(&thread, NULL, acknowledge_later, cq));
    REQUIRE_OK(ibv_destroy_cq(c.cq));
    REQUIRE(now() - start >= 0.14);
    REQUIRE_OK(pthread_join(thread, NULL));
    REQUIRE_OK(ibv_destroy_comp_channel(c.channel));
    device_close(&c.p.dev);
}

/* A blocked ibv_get_cq_event returns when the message comes. */
static void *late_message(void *arg)
{
    struct channel_pair *c = arg;
    sleep_ms(100);
    struct op op = op_make(&c->p.a, IBV_WR_SEND, 9, 0, 8);
    return (void *)(intptr_t)op_try(&c->p.a, &op);
}

static void blocking_wait(void)
{
    struct channel_pair c;
    pthread_t thread;
    void *rc;
    channel_open(&c, (struct end_options){0});
    recv_post(&c.p.b, 1, 0, 8);
    REQUIRE_OK(ibv_req_notify_cq(c.cq, 0));
    double start = now();
    REQUIRE_OK(pthread_create(&thread, NULL, late_message, &c));
    take_event(&c);
    REQUIRE(now() - start >= 0.09);
    REQUIRE_OK(pthread_join(thread, &rc));
    REQUIRE(rc == NULL);
    cq_expect(c.cq, 1, IBV_WC_SUCCESS);
    channel_close(&c);
}

/* IBA 11.6.3: more completions than places: an asynchronous error event of the queue. */
static void overrun(void)
{
    struct device d;
    struct end e;
    struct ibv_async_event ev;
    device_open(&d);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 4, NULL, NULL, 0);
    REQUIRE(cq != NULL && cq->cqe >= 4);
    uint32_t n = (uint32_t)cq->cqe + 4;
    end_open(&e, &d, &(struct end_options){.recv_cq = cq, .recv_wr = n});
    REQUIRE_OK(end_to_init(&e, 0));
    for (uint64_t i = 0; i < n; i++)
        recv_post(&e, i, 0, 8);
    REQUIRE_OK(end_to_state(&e, IBV_QPS_ERR));
    event_next(d.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    REQUIRE(ev.element.cq == cq);
    ibv_ack_async_event(&ev);
    end_close(&e);
    REQUIRE_OK(ibv_destroy_cq(cq));
    device_close(&d);
}

static void resize(void)
{
    struct pair p;
    PAIR(&p, .cqe = 8);
    for (uint64_t i = 0; i < 6; i++) {
        recv_post(&p.b, i, 0, 8);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    sleep_ms(20); /* six completions wait in b's queue */
    REQUIRE_OK(ibv_resize_cq(p.b.recv_cq, 100));
    REQUIRE(p.b.recv_cq->cqe >= 100);
    REQUIRE_FAILS(ibv_resize_cq(p.b.recv_cq, 2));
    for (uint64_t i = 6; i < 60; i++) {
        recv_post(&p.b, i, 0, 8);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    for (uint64_t i = 0; i < 60; i++)
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    pair_close(&p);
}

static void poll_takes_many(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_wc wc[64];
    for (uint64_t i = 0; i < 30; i++) {
        recv_post(&p.b, i, 0, 8);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, 8);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    int got = 0;
    for (double end = now() + time_limit(); got < 30 && now() < end;) {
        int n = ibv_poll_cq(p.b.recv_cq, got ? 64 - got : 7, wc + got); /* never more than asked for */
        REQUIRE(n >= 0 && n <= (got ? 64 - got : 7));
        got += n;
    }
    REQUIRE_EQ(got, 30);
    for (int i = 0; i < 30; i++)
        REQUIRE_EQ(wc[i].wr_id, i);
    REQUIRE_EQ(ibv_poll_cq(p.b.recv_cq, 0, wc), 0);
    pair_close(&p);
}

/* Two threads poll one queue: each completion goes to one of them. */
enum { POLLED = 400 };
struct pollers {
    struct ibv_cq *cq;
    atomic_int taken[POLLED];
    atomic_int total;
};

static void *poller(void *arg)
{
    struct pollers *s = arg;
    struct ibv_wc wc[4];
    for (double end = now() + time_limit(); atomic_load(&s->total) < POLLED && now() < end;) {
        int n = ibv_poll_cq(s->cq, 4, wc);
        for (int i = 0; i < n; i++) {
            atomic_fetch_add(&s->taken[wc[i].wr_id % POLLED], wc[i].status == IBV_WC_SUCCESS ? 1 : 1000);
            atomic_fetch_add(&s->total, 1);
        }
        if (n <= 0)
            sched_yield();
    }
    return NULL;
}

static void threads_poll(void)
{
    static struct pollers s;
    struct pair p;
    pthread_t threads[2];
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    s.cq = p.a.send_cq;
    for (int i = 0; i < 2; i++)
        REQUIRE_OK(pthread_create(&threads[i], NULL, poller, &s));
    for (int i = 0; i < POLLED; i++) {
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8, &to, 0);
        double end = now() + time_limit();
        while (op_try(&p.a, &op))
            REQUIRE(now() < end && !sched_yield());
    }
    for (int i = 0; i < 2; i++)
        REQUIRE_OK(pthread_join(threads[i], NULL));
    for (int i = 0; i < POLLED; i++)
        REQUIRE_EQ(atomic_load(&s.taken[i]), 1);
    pair_close(&p);
}

static void bad_sizes_refused(void)
{
    struct device d;
    device_open(&d);
    REQUIRE(ibv_create_cq(d.ctx, d.attr.max_cqe + 1, NULL, NULL, 0) == NULL);
    REQUIRE(ibv_create_cq(d.ctx, -1, NULL, NULL, 0) == NULL);
    device_close(&d);
}

/* man ibv_create_cq: comp_vector must be at least zero and less than num_comp_vectors. */
static void vectors(void)
{
    struct device d;
    device_open(&d);
    REQUIRE(d.ctx->num_comp_vectors >= 1);
    for (int i = 0; i < d.ctx->num_comp_vectors && i < 4; i++) {
        struct ibv_cq *cq = ibv_create_cq(d.ctx, 4, NULL, NULL, i);
        REQUIRE(cq != NULL);
        REQUIRE_OK(ibv_destroy_cq(cq));
    }
    REQUIRE(ibv_create_cq(d.ctx, 4, NULL, NULL, d.ctx->num_comp_vectors) == NULL);
    device_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(notification),
    CASE(solicited_only),
    CASE(error_is_solicited),
    CASE(earlier_completions),
    CASE(nonblocking_channel),
    CASE(shared_channel),
    CASE(destroy_waits_for_acknowledgement),
    CASE(blocking_wait),
    CASE(overrun),
    CASE(resize),
    CASE(poll_takes_many),
    CASE(threads_poll),
    CASE(bad_sizes_refused),
    CASE(vectors),
};
VERBS_MAIN("completion", cases)
