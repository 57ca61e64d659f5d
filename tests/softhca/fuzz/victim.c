/* The healthy process: random steps of all that a program does with verbs, with a peer that is hostile. Whatever comes
 * back is right, as long as it comes back; and when all is destroyed again, a new connection within this process
 * works, unless its own segment was scribbled on. */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define QPS 10
#define CQS 3

struct victim {
    struct side side;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq[CQS];
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    char *memory;
    struct {
        struct ibv_qp *qp;
        struct end_info to;
        bool broken;
        struct requests sends, receives;
    } end[QPS];
    struct requests srq_receives;
    uint16_t hostile_lid;
    int fd;
    bool scribbled; /* our own segment is */
    unsigned succeeded, failed;
};

/* ---- making and destroying ---- */

static struct ibv_cq *make_cq(struct victim *v, struct rng *r)
{
    return ibv_create_cq(v->side.ctx, rng_below(r, 16) ? 256 : 2, NULL, rng_below(r, 2) ? v->channel : NULL, 0);
}

/* Asks the hostile one for its end. False: it does not answer, or ended. */
static bool ask(struct victim *v, struct ibv_qp *qp, struct end_info *to)
{
    struct end_info mine = {.type = qp->qp_type,
                            .qpn = qp->qp_num,
                            .rkey = v->mr->rkey,
                            .lid = v->side.port.lid,
                            .addr = (uintptr_t)v->mr->addr,
                            .bytes = FUZZ_MEMORY};
    struct pollfd p = {.fd = v->fd, .events = POLLIN};

    if (v->fd < 0)
        return false;
    if (send(v->fd, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine || poll(&p, 1, 500) <= 0 ||
        recv(v->fd, to, sizeof *to, 0) != sizeof *to) {
        close(v->fd);
        v->fd = -1;
        return false;
    }
    return to->type != 0;
}

static void destroy_end(struct victim *v, unsigned i)
{
    if (v->end[i].qp && ibv_destroy_qp(v->end[i].qp) != 0)
        abort();
    v->end[i].qp = NULL;
    requests_end(&v->end[i].sends);
    requests_end(&v->end[i].receives);
}

static void renew_end(struct victim *v, unsigned i, struct rng *r)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    struct end_info self;
    struct ibv_qp *qp;

    destroy_end(v, i);
    qp = v->end[i].qp = make_qp(&v->side, types[rng_below(r, 4)], v->cq[rng_below(r, CQS)], v->cq[rng_below(r, CQS)],
                                rng_below(r, 3) ? NULL : v->srq);
    if (!qp)
        return;
    v->end[i].broken = false;
    /* Some lead back to themselves. */
    self = (struct end_info){.qpn = qp->qp_num,
                             .rkey = v->mr->rkey,
                             .lid = v->side.port.lid,
                             .addr = (uintptr_t)v->mr->addr,
                             .bytes = FUZZ_MEMORY};
    if (rng_below(r, 4) == 0 || !ask(v, qp, &v->end[i].to))
        v->end[i].to = self;
    (void)connect_qp(&v->side, qp, &v->end[i].to);
}

static void renew_mr(struct victim *v)
{
    struct ibv_mr *mr = ibv_reg_mr(v->side.pd, v->memory, FUZZ_MEMORY,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_ATOMIC);

    if (!mr)
        return;
    if (v->mr)
        (void)ibv_dereg_mr(v->mr);
    v->mr = mr;
}

/* Another queue in the place of one, and of the queue pairs that used it none. */
static void renew_cq(struct victim *v, unsigned i, struct rng *r)
{
    struct ibv_cq *cq = make_cq(v, r);

    if (!cq)
        return;
    for (unsigned k = 0; k < QPS; k++) {
        const struct ibv_qp *qp = v->end[k].qp;
        if (qp && (qp->send_cq == v->cq[i] || qp->recv_cq == v->cq[i]))
            destroy_end(v, k);
    }
    if (ibv_destroy_cq(v->cq[i]) != 0)
        abort();
    v->cq[i] = cq;
}

static bool open_all(struct victim *v, struct rng *r)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 64, .max_sge = 3}};
    struct ibv_ah_attr ah = {.port_num = 1};

    if (!side_open(&v->side) || !(v->channel = ibv_create_comp_channel(v->side.ctx)))
        return false;
    (void)fcntl(v->channel->fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(v->side.ctx->async_fd, F_SETFL, O_NONBLOCK);
    v->memory = file_memory();
    renew_mr(v);
    for (int i = 0; i < CQS; i++)
        v->cq[i] = make_cq(v, r);
    v->srq = ibv_create_srq(v->side.pd, &srq);
    ah.dlid = v->side.port.lid;
    v->ah = ibv_create_ah(v->side.pd, &ah);
    return v->mr && v->srq && v->ah && v->cq[0] && v->cq[1] && v->cq[2];
}

static void events(struct victim *v)
{
    struct ibv_async_event event;
    struct ibv_cq *cq;
    void *user;

    for (int i = 0; i < 16 && ibv_get_cq_event(v->channel, &cq, &user) == 0; i++)
        ibv_ack_cq_events(cq, 1);
    for (int i = 0; i < 16 && ibv_get_async_event(v->side.ctx, &event) == 0; i++)
        ibv_ack_async_event(&event);
}

static bool close_all(struct victim *v)
{
    bool closed = true;

    for (unsigned i = 0; i < QPS; i++)
        destroy_end(v, i);
    for (int i = 0; i < CQS; i++)
        closed &= ibv_destroy_cq(v->cq[i]) == 0;
    closed &= ibv_destroy_srq(v->srq) == 0;
    requests_end(&v->srq_receives);
    closed &= ibv_destroy_ah(v->ah) == 0;
    closed &= ibv_dereg_mr(v->mr) == 0;
    closed &= ibv_destroy_comp_channel(v->channel) == 0;
    closed &= ibv_dealloc_pd(v->side.pd) == 0;
    closed &= ibv_close_device(v->side.ctx) == 0;
    munmap(v->memory, FUZZ_MEMORY);
    return closed;
}

/* ---- steps ---- */

static void query(struct victim *v, struct ibv_qp *qp)
{
    static const char *const name[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct ibv_srq_attr srq;
    struct ibv_device_attr device;
    struct ibv_port_attr port;

    /* A program may well index a table by the state. */
    if (qp && ibv_query_qp(qp, &a, IBV_QP_STATE, &init) == 0 && (unsigned)a.qp_state < 8 && !name[a.qp_state][0])
        abort();
    if (qp && ibv_query_qp(qp, &a, IBV_QP_STATE, &init) == 0 && (unsigned)a.qp_state > IBV_QPS_ERR)
        abort();
    (void)ibv_query_srq(v->srq, &srq);
    (void)ibv_query_device(v->side.ctx, &device);
    (void)ibv_query_port(v->side.ctx, 1, &port);
}

static void reconnect(struct victim *v, unsigned i)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

    (void)ibv_modify_qp(v->end[i].qp, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RESET;
    if (ibv_modify_qp(v->end[i].qp, &a, IBV_QP_STATE) == 0) {
        requests_end(&v->end[i].sends);
        requests_end(&v->end[i].receives);
    }
    (void)connect_qp(&v->side, v->end[i].qp, &v->end[i].to);
}

static void completed(struct victim *v, const struct ibv_wc *wc)
{
    bool receive = request_is_receive(wc);
    unsigned i = 0;

    while (i < QPS && !(v->end[i].qp && v->end[i].qp->qp_num == wc->qp_num))
        i++;
    if (i == QPS)
        abort(); /* a program finds what is its by this number */
    request_completed(!receive            ? &v->end[i].sends
                      : v->end[i].qp->srq ? &v->srq_receives
                                          : &v->end[i].receives,
                      v->end[i].qp->qp_type, wc);
    if (wc->status == IBV_WC_SUCCESS) {
        v->succeeded++;
        return;
    }
    v->failed++;
    v->end[i].broken = true;
}

static void poll_all(struct victim *v, struct rng *r)
{
    struct ibv_wc wc[16];
    unsigned q = rng_below(r, CQS);
    int got = ibv_poll_cq(v->cq[q], 16, wc);

    if (got < 0)
        renew_cq(v, q, r);
    for (int i = 0; i < got; i++)
        completed(v, &wc[i]);
}

static void step(struct victim *v, struct rng *r)
{
    unsigned i = rng_below(r, QPS);
    struct ibv_qp *qp = v->end[i].qp;
    struct ibv_srq_attr limit = {.srq_limit = rng_below(r, 64)};

    if ((!qp || v->end[i].broken) && rng_below(r, 2)) {
        renew_end(v, i, r);
        return;
    }
    switch (rng_below(r, 40)) {
    case 0:
        renew_end(v, i, r);
        break;
    case 1:
        if (rng_below(r, 8) == 0)
            renew_mr(v);
        break;
    case 2:
        if (rng_below(r, 4) == 0)
            renew_cq(v, rng_below(r, CQS), r);
        break;
    case 3:
        (void)ibv_resize_cq(v->cq[rng_below(r, CQS)], 128 << rng_below(r, 3));
        break;
    case 4:
        (void)ibv_modify_srq(v->srq, &limit, IBV_SRQ_LIMIT);
        break;
    case 5:
        query(v, qp);
        break;
    case 6:
        if (qp && rng_below(r, 8) == 0)
            reconnect(v, i);
        break;
    case 7:
    case 8:
        (void)ibv_req_notify_cq(v->cq[rng_below(r, CQS)], (int)rng_below(r, 2));
        break;
    case 9:
    case 10:
        events(v);
        break;
    case 11:
    case 12:
    case 13:
        post_receive(NULL, v->srq, v->mr, &v->srq_receives, r);
        break;
    default:
        if (qp && rng_below(r, 2) && !qp->srq)
            post_receive(qp, NULL, v->mr, &v->end[i].receives, r);
        else if (qp && rng_below(r, 2))
            post_random(qp, v->mr, &v->end[i].to, v->ah, &v->end[i].sends, r);
        else
            poll_all(v, r);
    }
}

int victim_main(int fd, enum form form, uint64_t seed, unsigned steps)
{
    struct victim v = {.fd = fd, .scribbled = form == FORM_PEER || form == FORM_BOTH};
    struct rng r = rng_from(seed + 2);
    struct end_info ready = {.pid = (uint32_t)getpid()};

    if (!open_all(&v, &r)) {
        fprintf(stderr, "the victim's objects cannot be made\n");
        return 1;
    }
    for (unsigned i = 0; i < QPS; i++)
        renew_end(&v, i, &r);
    if (send(v.fd, &ready, sizeof ready, MSG_NOSIGNAL) < 0)
        fprintf(stderr, "the hostile process has ended early\n");
    for (unsigned i = 0; i < steps; i++) {
        step(&v, &r);
        if (i % 16 == 0)
            usleep(20); /* the other one has its turn */
        if (!v.scribbled && i % 200 == 199 && !works_with_itself(&v.side))
            return 1;
    }
    events(&v);
    if (getenv("FUZZ_VERBOSE"))
        fprintf(stderr, "seed %llu, %s: %u completions succeeded, %u failed\n", (unsigned long long)seed,
                form_name[form], v.succeeded, v.failed);
    if (!v.scribbled && !works_with_itself(&v.side))
        return 1;
    if (!close_all(&v)) {
        fprintf(stderr, "an object of the victim's cannot be destroyed\n");
        return 1;
    }
    return 0;
}
