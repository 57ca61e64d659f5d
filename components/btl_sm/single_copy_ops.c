/* get and put: short ones at once, longer ones from progress, in pieces, so that nobody waits long for a turn. */
#include <strata/sdk/worker.h>
#include <strata/sdk/btl_rdma.h>
#include "single_copy.h"
#include "sm.h"

#include <stdlib.h>

#define AT_ONCE 16384u /* up to here the copy is made inside get or put */

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

static int sm_copy_start(struct sm_peer *p, enum sm_direction dir, void *local, uint64_t remote, size_t len,
                         struct st_btl_op *user)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_op *op;
    int rc;

    if (p->failed || p->died)
        return STRATA_ERR_PEER;
    if (p->single_copy == SM_COPY_OFF)
        return STRATA_ERR_UNSUPPORTED;
    if (len <= AT_ONCE) {
        rc = sm_copy_bytes(p->pid, dir, local, remote, len);
        m->count.one_sided++;
        sm_copy_count_bytes(m, dir, len);
        return rc == STRATA_OK ? 1 : sm_copy_give_up(p, rc);
    }
    op = calloc(1, sizeof *op);
    if (!op)
        return STRATA_ERR_AGAIN;
    op->peer = p;
    op->user = user;
    op->local = local;
    op->remote = remote;
    op->len = len;
    op->dir = dir;
    if (p->single_copy != SM_COPY_COOPERATIVE || len < m->par->coop_min || !sm_coop_start(m, op))
        m->count.one_sided++;
    if (m->ops_last)
        m->ops_last->next = op;
    else
        m->ops_first = op;
    m->ops_last = op;
    m->work++;
    sm_copy_count_bytes(m, dir, len);
    if (m->btl.worker && m->btl.worker->threaded)
        st_worker_wake(m->btl.worker); /* it is moved by progress, and another thread may sleep */
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

/* One piece of an operation. 1: more to do. */
static int sm_copy_step(struct sm_module *m, struct sm_op *op)
{
    size_t n = op->len - op->at;
    int rc;

    if (op->desc) {
        rc = sm_coop_step(m, op);
        return rc == STRATA_OK ? op->error : rc;
    }
    if (op->error != STRATA_OK)
        return op->error;
    if (n > m->par->coop_chunk)
        n = m->par->coop_chunk;
    rc = sm_copy_bytes(op->peer->pid, op->dir, op->local + op->at, op->remote + op->at, n);
    if (rc == STRATA_ERR_AGAIN)
        return 1;
    if (rc != STRATA_OK)
        return rc;
    op->at += n;
    return op->at < op->len ? 1 : STRATA_OK;
}

static int sm_copy_ops_progress(struct sm_module *m)
{
    struct sm_op *op = m->ops_first;
    int rc;

    if (!op)
        return 0;
    rc = sm_copy_step(m, op);
    if (rc == 1) {
        /* An operation that only waits for its helper lets the next one go on. */
        if (op->closed && op->desc && op->next) {
            m->ops_first = op->next;
            op->next = NULL;
            m->ops_last->next = op;
            m->ops_last = op;
        }
        return op->closed && op->desc ? 0 : 1;
    }
    m->ops_first = op->next;
    if (!m->ops_first)
        m->ops_last = NULL;
    m->work--;
    op->user->done(op->user, sm_copy_give_up(op->peer, rc));
    free(op);
    return 1;
}

static int sm_copy_helps_progress(struct sm_module *m)
{
    struct sm_help *h = m->helps;

    if (!h)
        return 0;
    if (sm_coop_help(m, h))
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
    return sm_copy_helps_progress(m) + sm_copy_ops_progress(m);
}

void sm_copy_cancel(struct sm_peer *p)
{
    for (struct sm_op *op = sm_module(p->ep.btl)->ops_first; op; op = op->next) {
        if (op->peer == p && op->error == STRATA_OK)
            sm_copy_abandon(op, STRATA_ERR_PEER);
    }
}

void sm_copy_close(struct sm_module *m)
{
    struct sm_op *op;
    struct sm_help *h;

    while ((op = m->ops_first) != NULL) {
        m->ops_first = op->next;
        if (op->desc)
            sm_coop_withdraw(op, m->par->close_timeout_ms);
        free(op);
    }
    while ((h = m->helps) != NULL) {
        m->helps = h->next;
        free(h);
    }
    m->ops_last = NULL;
    m->helps_last = NULL;
}
