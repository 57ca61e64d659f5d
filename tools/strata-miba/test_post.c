/* Posting: what a call of ibv_post_send and of ibv_post_recv takes, without the completions. */
#include "config.h"
#include "tests.h"

#include <errno.h>
#include "pattern.h"
#include "post_inl.h"
#include "wait_inl.h"

#define DEPTH 128u

/* n posts with the clock running, then all their completions without it. */
static enum miba_status posts(struct endpoint *e, unsigned n, uint64_t *ns)
{
    int error = 0;
    struct ibv_wc wc;
    enum miba_status status = MIBA_OK;

    const uint64_t begin = miba_now();
    for (unsigned i = 0; i < n && !error; i++)
        error = endpoint_post(e, 1, true);
    *ns = miba_now() - begin;
    if (error)
        return miba_fail_verb(&e->m->why, error, "ibv_post_send", miba_op_name(e->t.op));
    for (unsigned i = 0; i < n && !status && !e->over; i++)
        status = wait_one(e, e->scq, &wc);
    return status;
}

static enum miba_status send_batch(void *arg, unsigned n, double *ns)
{
    return pattern_batch_of(arg, posts, n, ns);
}

static enum miba_status lead_send(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    static const char *const figures[] = {"post_send"};
    const struct measure what = {.run = send_batch, .arg = e, .figures = 1, .most = DEPTH, .scale = 1};

    return measure_and_report(m, c, &what, figures);
}

static enum miba_status shape_send(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    if (c->x > 1u << 30)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "messages have 1 GiB at most");
    t->size = miba_op_is_atomic(c->op) ? 8 : (uint32_t)c->x;
    t->window = DEPTH;
    return MIBA_OK;
}

struct receiver {
    struct miba *m;
    struct ibv_qp *qp;
    struct ibv_recv_wr wr;
};

/* The queue pair is reset after each batch, and takes receives again in INIT. */
static enum miba_status recv_batch(void *arg, unsigned n, double *ns)
{
    struct receiver *r = arg;
    struct ibv_recv_wr *bad;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = r->m->dev.port_number};
    int error = ibv_modify_qp(r->qp, &reset, IBV_QP_STATE);

    if (!error)
        error = ibv_modify_qp(r->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error)
        return miba_fail_verb(&r->m->why, error, "ibv_modify_qp", "RESET, INIT");
    const uint64_t begin = miba_now();
    for (unsigned i = 0; i < n && !error; i++)
        error = ibv_post_recv(r->qp, &r->wr, &bad);
    ns[0] = (double)(miba_now() - begin);
    return error ? miba_fail_verb(&r->m->why, error, "ibv_post_recv", NULL) : MIBA_OK;
}

static enum miba_status lead_recv(struct miba *m, const struct miba_case *c)
{
    static const char *const figures[] = {"post_recv"};
    static char memory[4096];
    const unsigned depth = m->dev.attr.max_qp_wr < 1024 ? (unsigned)m->dev.attr.max_qp_wr : 1024;
    struct ibv_sge sge[MOST_SEGMENTS];
    struct receiver r = {.m = m, .wr = {.sg_list = sge, .num_sge = (int)c->x}};
    const struct measure what = {.run = recv_batch, .arg = &r, .figures = 1, .most = depth, .scale = 1};
    enum miba_status status;

    if (c->x == 0 || c->x > MOST_SEGMENTS || c->x > (uint64_t)m->dev.attr.max_sge)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu segments: the device's lists have 1 to %d, this test's %u",
                         (unsigned long long)c->x, m->dev.attr.max_sge, MOST_SEGMENTS);
    struct ibv_mr *mr = ibv_reg_mr(m->dev.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *cq = mr ? ibv_create_cq(m->dev.ctx, 1, NULL, NULL, 0) : NULL;
    const char *verb = !mr ? "ibv_reg_mr" : !cq ? "ibv_create_cq" : "ibv_create_qp";
    struct ibv_qp_init_attr a = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = (uint32_t)c->x}};
    r.qp = cq ? ibv_create_qp(m->dev.pd, &a) : NULL;
    if (r.qp) {
        for (uint64_t i = 0; i < c->x; i++)
            sge[i] = (struct ibv_sge){.addr = (uintptr_t)memory + 64 * i, .length = 64, .lkey = mr->lkey};
        status = measure_and_report(m, c, &what, figures);
        ibv_destroy_qp(r.qp);
    } else {
        status = miba_fail_verb(&m->why, errno, verb, NULL);
    }
    if (cq)
        ibv_destroy_cq(cq);
    if (mr)
        ibv_dereg_mr(mr);
    return status;
}

static const uint64_t sizes[] = {8, 1024};
static const uint64_t segments[] = {1, 4, 16};

const struct miba_test test_post_send = {
    .name = "post_send",
    .paper = "Table 1",
    .isolates = "One call of ibv_post_send with one request; its completion is polled with the clock stopped. Where "
                "the device is "
                "software, the message itself may be carried out in the call.",
    .x_name = "size",
    VALUES(sizes),
    .ops = BIT(OP_SEND) | BIT(OP_WRITE) | BIT(OP_READ),
    .transports = EVERY_TRANSPORT,
    .shape = shape_send,
    .lead = lead_send,
};

const struct miba_test test_post_recv = {
    .name = "post_recv",
    .paper = "Table 1",
    .isolates = "One call of ibv_post_recv with one request, by the entries of its list. Nothing is received.",
    .x_name = "segments",
    VALUES(segments),
    .values_fixed = true,
    .local = lead_recv,
};
