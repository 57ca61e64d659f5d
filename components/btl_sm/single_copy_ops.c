/* get and put: short ones at once, longer ones from progress, in pieces, so that nobody waits long for a turn. */
#include <strata/sdk/clock.h>
#include <strata/sdk/worker.h>
#include <strata/sdk/btl_rdma.h>
#include "peer_maps.h"
#include "learn.h"
#include "single_copy.h"
#include "sm.h"

#include <stdlib.h>

static int sm_copy_give_up(struct sm_peer *p, int rc)
{
    if (rc == STRATA_ERR_UNSUPPORTED)
        sm_copy_demote(p);
    /* Without an endpoint the operation was cancelled: nothing is known of the process. */
    if (rc == STRATA_ERR_PEER && p->connected)
        sm_peer_died(p);
    return rc;
}

static void sm_copy_count_bytes(struct sm_module *m, enum sm_direction dir, size_t len)
{
    *(dir == SM_COPY_PUT ? &m->btl.bytes_sent : &m->btl.bytes_got) += len;
}

int sm_copy_part(const struct sm_op *op, void *local, uint64_t remote, size_t len)
{
    uint64_t begin = st_now_ns();
    int rc = sm_copy_bytes(op->peer->pid, op->dir, local, remote, len);

    if (rc == STRATA_OK)
        sm_copied(op->peer, len, st_now_ns() - begin, op->len);
    return rc;
}

int sm_copy_now(struct sm_peer *p, enum sm_direction dir, void *local, uint64_t remote, size_t len)
{
    struct sm_module *m = sm_module(p->ep.btl);
    int rc = sm_copy_bytes(p->pid, dir, local, remote, len);

    m->count.one_sided++;
    sm_copy_count_bytes(m, dir, len);
    return sm_copy_give_up(p, rc);
}

struct sm_op *sm_op_new(struct sm_peer *p, const struct sm_op *what)
{
    struct sm_op *op = malloc(sizeof *op);

    if (!op)
        return NULL;
    *op = *what;
    op->peer = p;
    return op;
}

void sm_op_begin(struct sm_module *m, struct sm_op *op)
{
    op->fresh = true;
    sm_op_push(&m->ops, op);
    m->work++;
    sm_copy_count_bytes(m, op->dir, op->len);
    if (m->btl.worker && m->btl.worker->threaded)
        st_worker_wake(m->btl.worker); /* it is moved by progress, and another thread may sleep */
}

void sm_op_end(struct sm_module *m, struct sm_op *op, int rc)
{
    m->work--;
    if (op->map)
        op->map->holds--;
    op->user->done(op->user, sm_copy_give_up(op->peer, rc));
    free(op);
}

static int sm_copy_start(struct sm_peer *p, enum sm_direction dir, void *local, uint64_t remote, size_t len,
                         struct st_btl_op *user)
{
    struct sm_op *op;
    int rc;

    if (p->failed || p->died)
        return STRATA_ERR_PEER;
    if (p->single_copy == SM_COPY_OFF)
        return STRATA_ERR_UNSUPPORTED;
    if (len <= SM_COPY_AT_ONCE) {
        rc = sm_copy_now(p, dir, local, remote, len);
        return rc == STRATA_OK ? 1 : rc;
    }
    op = sm_op_new(p, &(struct sm_op){.user = user, .local = local, .remote = remote, .len = len, .dir = dir});
    if (!op)
        return STRATA_ERR_AGAIN;
    sm_op_begin(sm_module(p->ep.btl), op);
    return STRATA_OK;
}

int sm_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    (void)remote_key;
    (void)reg;
    return sm_copy_start(sm_peer(ep), SM_COPY_GET, local, remote, len, op);
}

int sm_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    (void)remote_key;
    (void)reg;
    return sm_copy_start(sm_peer(ep), SM_COPY_PUT, (void *)(uintptr_t)local, remote, len, op);
}

/* Others want the processors: a helper that has claimed a piece may lose its own before that is copied. */
static bool copy_goes_alone(const struct sm_module *m)
{
    return m->btl.worker && st_worker_is_busy(m->btl.worker);
}

/* How an operation whose turn has come is done: by then it is known what became of the calls for help before it. */
static void sm_copy_plan(struct sm_module *m, struct sm_op *op)
{
    op->fresh = false;
    if (op->to)
        m->count.stored++;
    else if (op->peer->single_copy != SM_COPY_COOPERATIVE || op->len < m->par->coop_min || copy_goes_alone(m) ||
             !sm_coop_worth_a_call(op->peer) || !sm_coop_start(m, op))
        m->count.one_sided++;
}

/* One piece of an operation. 1: more to do. */
static int sm_copy_step(struct sm_module *m, struct sm_op *op)
{
    size_t n = op->len - op->at;
    int rc;

    if (op->fresh && op->error == STRATA_OK)
        sm_copy_plan(m, op);
    if (op->desc) {
        rc = sm_coop_step(m, op);
        return rc == STRATA_OK ? op->error : rc;
    }
    if (op->error != STRATA_OK)
        return op->error;
    if (n > m->par->coop_chunk)
        n = m->par->coop_chunk;
    if (op->to) {
        sm_store(op->peer, op->to + op->at, op->local + op->at, n);
        rc = STRATA_OK;
    } else {
        rc = sm_copy_part(op, op->local + op->at, op->remote + op->at, n);
    }
    if (rc == STRATA_ERR_AGAIN)
        return 1;
    if (rc != STRATA_OK)
        return rc;
    op->at += n;
    return op->at < op->len ? 1 : STRATA_OK;
}

static int sm_copy_ops_progress(struct sm_module *m)
{
    struct sm_op *op = m->ops.first;
    int rc;

    if (!op)
        return 0;
    rc = sm_copy_step(m, op);
    if (rc == 1) {
        /* An operation that only waits for its helper lets the next one go on. */
        bool waits = op->closed && op->desc;
        if (waits)
            sm_op_push(&m->ops, sm_op_pop(&m->ops));
        return !waits;
    }
    (void)sm_op_pop(&m->ops);
    if (rc == STRATA_OK && op->notify)
        (void)sm_notice_waits(m, op);
    else
        sm_op_end(m, op, rc);
    return 1;
}

static int sm_copy_helps_progress(struct sm_module *m)
{
    struct sm_help *h = m->helps;

    if (!h)
        return 0;
    /* A process with a copy of its own does not help: with messages both ways each moves its own. */
    if ((!m->ops.first || m->ops.first->closed) && sm_coop_help(m, h))
        return 1;
    m->helps = h->next;
    if (!m->helps)
        m->helps_last = NULL;
    m->work--;
    free(h);
    return 1;
}

int sm_copy_progress(struct sm_module *m)
{
    return sm_notices_progress(m) + sm_copy_helps_progress(m) + sm_copy_ops_progress(m);
}

static void sm_ops_cancel(const struct sm_op_list *list, const struct sm_peer *p)
{
    for (struct sm_op *op = list->first; op; op = op->next) {
        if (op->peer == p && op->error == STRATA_OK)
            sm_copy_abandon(op, STRATA_ERR_PEER);
    }
}

void sm_copy_cancel(struct sm_peer *p)
{
    sm_ops_cancel(&sm_module(p->ep.btl)->ops, p);
    sm_ops_cancel(&sm_module(p->ep.btl)->notices, p);
}

static bool sm_ops_busy(const struct sm_op_list *list, const struct sm_peer *p)
{
    const struct sm_op *op = list->first;

    while (op && op->peer != p)
        op = op->next;
    return op != NULL;
}

bool sm_copy_busy(const struct sm_module *m, const struct sm_peer *p)
{
    const struct sm_help *h = m->helps;

    while (h && h->peer != p)
        h = h->next;
    return h || sm_ops_busy(&m->ops, p) || sm_ops_busy(&m->notices, p);
}

static void sm_ops_drop(struct sm_module *m, struct sm_op_list *list)
{
    struct sm_op *op;

    while ((op = sm_op_pop(list)) != NULL) {
        if (op->desc)
            sm_coop_withdraw(op, m->par->close_timeout_ms);
        if (op->map)
            op->map->holds--;
        free(op);
    }
}

void sm_copy_close(struct sm_module *m)
{
    struct sm_help *h;

    sm_ops_drop(m, &m->ops);
    sm_ops_drop(m, &m->notices);
    while ((h = m->helps) != NULL) {
        m->helps = h->next;
        free(h);
    }
    m->helps_last = NULL;
}
