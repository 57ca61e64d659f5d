/* Polling: an empty completion queue, and one that has completions. */
#include "config.h"
#include "tests.h"

#include <errno.h>
#include "pattern.h"
#include "post_inl.h"

#define DEPTH      512u
#define MOST_TRIES 8u

struct empty {
    struct miba *m;
    struct ibv_cq *cq;
    int asked;
};

static enum miba_status empty_batch(void *arg, unsigned n, double *ns)
{
    struct empty *q = arg;
    struct ibv_wc wc[64];
    int some = 0;

    const uint64_t begin = miba_now();
    for (unsigned i = 0; i < n; i++)
        some |= ibv_poll_cq(q->cq, q->asked, wc);
    ns[0] = (double)(miba_now() - begin);
    return some ? miba_fail(&q->m->why, MIBA_FAILED, "an empty completion queue answers %d", some) : MIBA_OK;
}

static enum miba_status lead_empty(struct miba *m, const struct miba_case *c)
{
    static const char *const figures[] = {"poll_empty"};
    struct empty q = {.m = m, .cq = ibv_create_cq(m->dev.ctx, 256, NULL, NULL, 0), .asked = c->x > 64 ? 64 : (int)c->x};
    const struct measure what = {.run = empty_batch, .arg = &q, .figures = 1, .most = 1u << 20, .scale = 1};

    if (!q.cq)
        return miba_fail_verb(&m->why, errno, "ibv_create_cq", NULL);
    const enum miba_status status = measure_and_report(m, c, &what, figures);
    ibv_destroy_cq(q.cq);
    return status;
}

/* Polls of one completion each, until n are there. False: one found nothing. */
static bool poll_all(struct endpoint *e, unsigned n, int asked, double *ns, enum miba_status *status)
{
    struct ibv_wc wc[64];
    unsigned got = 0;
    bool dry = false;

    const uint64_t begin = miba_now();
    while (got < n) {
        const int k = ibv_poll_cq(e->scq, asked, wc);
        if (k <= 0) {
            dry = true;
            break;
        }
        got += (unsigned)k;
    }
    *ns = (double)(miba_now() - begin);
    struct idle w = {0};
    while (got < n && !e->over) {
        const int k = ibv_poll_cq(e->scq, 1, wc);
        got += k > 0 ? (unsigned)k : 0;
        if (k <= 0 && ++w.turns % IDLE_TURNS == 0)
            endpoint_look(e, &w);
    }
    *status = e->over ? endpoint_over(e) : MIBA_OK;
    return !dry;
}

/* All writes are complete before the clock starts: those that are not make the batch void, and it waits longer. */
static enum miba_status full_batch(void *arg, unsigned n, double *ns)
{
    struct endpoint *e = arg;
    enum miba_status status = MIBA_OK;
    uint64_t wait_ns = 20000;

    e->over = OVER_NOT;
    for (unsigned try = 0; try < MOST_TRIES && !status; try++, wait_ns *= 4) {
        const int error = endpoint_post(e, n, true);
        if (error)
            return miba_fail_verb(&e->m->why, error, "ibv_post_send", NULL);
        /* Not asleep: the processor stays awake, and its caches warm. */
        for (const uint64_t end = miba_now() + wait_ns; miba_now() < end;)
            ;
        if (poll_all(e, n, 1, ns, &status) && !status)
            return MIBA_OK;
    }
    return status ? status
                  : miba_fail(&e->m->why, MIBA_FAILED,
                              "completions of writes come later than seconds after they are posted");
}

static enum miba_status lead_full(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    static const char *const figures[] = {"poll_full"};
    const struct measure what = {
        .run = full_batch, .arg = e, .figures = 1, .most = e->t.window, .step = e->t.window / 8, .scale = 1};

    return measure_and_report(m, c, &what, figures);
}

static enum miba_status shape_full(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    t->size = (uint32_t)c->x;
    t->window = m->dev.attr.max_qp_wr <= (int)DEPTH ? (uint32_t)m->dev.attr.max_qp_wr - 1 : DEPTH;
    return MIBA_OK;
}

static const uint64_t asked[] = {1, 16};
static const uint64_t sizes[] = {8};

const struct miba_test test_poll_empty = {
    .name = "poll_empty",
    .paper = "Table 1",
    .isolates = "One call of ibv_poll_cq on an empty completion queue, by the number of completions that it asks for.",
    .x_name = "asked",
    VALUES(asked),
    .values_fixed = true,
    .local = lead_empty,
};

const struct miba_test test_poll_full = {
    .name = "poll_full",
    .paper = "Table 1",
    .isolates = "One call of ibv_poll_cq that finds one completion. The queue holds all completions of a batch of "
                "writes before the "
                "first one is polled.",
    .x_name = "size",
    VALUES(sizes),
    .ops = BIT(OP_WRITE),
    .transports = BIT(RC),
    .values_fixed = true,
    .shape = shape_full,
    .lead = lead_full,
};
