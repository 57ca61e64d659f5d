/* Puts and gets: begun, reported, given up. */
#include <string.h>
#include "bulk.h"
#include "rdma.h"

/* ---- operations ---- */

/* Without a notice: a get, or a put. */
static int rdma_begin(struct st_btl_endpoint *ep, const struct tcp_job *what, const uint8_t *key)
{
    struct tcp_module *m = tcp_of(ep->btl);
    struct tcp_peer *p = (struct tcp_peer *)ep;
    struct tcp_rdma *r;
    struct tcp_job *job;

    if (!p->conn || p->conn->state != TCP_UP || p->conn->broken || p->failed || p->left)
        return tcp_send_unconnected(m, p);
    if (what->len == 0)
        return 1;
    r = tcp_rdma_of(m, p);
    if (!r || r->n_ops >= TCP_OPS)
        return STRATA_ERR_AGAIN;
    job = st_slab_get(&m->jobs);
    if (!job)
        return STRATA_ERR_AGAIN;
    *job = *what;
    memcpy(&job->key, key, sizeof job->key);
    job->id = r->next_id++;
    r->n_ops++;
    st_list_append(job->kind == TCP_JOB_GET ? &r->asks : &r->out, &job->node);
    tcp_rdma_make_busy(m, r);
    m->btl.messages_sent++;
    (void)tcp_rdma_run(m, r);
    return STRATA_OK;
}

static int rdma_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                    struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct tcp_job job = {.kind = TCP_JOB_GET, .local = local, .remote = remote, .len = len, .user = op};
    int rc = rdma_begin(ep, &job, remote_key);

    (void)reg;
    if (rc == STRATA_OK) {
        tcp_of(ep->btl)->count.gets++;
        ep->btl->bytes_got += len;
    }
    return rc;
}

static int rdma_put_of(struct st_btl_endpoint *ep, const struct tcp_job *job, const uint8_t *key)
{
    int rc = rdma_begin(ep, job, key);

    if (rc == STRATA_OK) {
        tcp_of(ep->btl)->count.puts++;
        ep->btl->bytes_sent += job->len;
    }
    return rc;
}

static int rdma_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                    size_t len, struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct tcp_job job = {
        .kind = TCP_JOB_PUT, .local = (char *)(uintptr_t)local, .remote = remote, .len = len, .user = op};

    (void)reg;
    return rdma_put_of(ep, &job, remote_key);
}

static int rdma_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                           size_t len, struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op)
{
    struct tcp_job job = {.kind = TCP_JOB_PUT,
                          .notify = true,
                          .word = word,
                          .local = (char *)(uintptr_t)local,
                          .remote = remote,
                          .len = len,
                          .user = op};

    (void)reg;
    return rdma_put_of(ep, &job, remote_key);
}

/* Ends the operations of this process; bytes that were sent still arrive. */
void tcp_disconnect(struct st_btl_endpoint *ep)
{
    struct tcp_module *m = tcp_of(ep->btl);
    struct tcp_peer *p = (struct tcp_peer *)ep;

    if (!tcp_rdma_waits(p))
        return;
    if (p->rdma->sending && p->rdma->sending->kind != TCP_JOB_ANSWER && !tcp_rdma_keep_rest(m, p))
        tcp_send_broken(m, tcp_bulk_now(p), "no memory is left, in the middle of a put");
    tcp_rdma_end_ops(p->rdma, false, STRATA_ERR_PEER);
}

/* A frame that has gone in part is finished from a copy; then the answer is refused, as its key is none any more. */
static void rdma_leave_memory(struct tcp_module *m, uint32_t index)
{
    for (struct st_node *n = m->busy.next, *next; n != &m->busy; n = next) {
        struct tcp_rdma *r = ST_CONTAINER(n, struct tcp_rdma, busy);
        next = n->next;
        if (r->sending && r->sending->kind == TCP_JOB_ANSWER && r->sending->key.index == index &&
            !tcp_rdma_keep_rest(m, r->peer)) {
            tcp_send_broken(m, tcp_bulk_now(r->peer), "no memory is left, in the middle of an answer");
            next = m->busy.next; /* others may have gone with it */
        }
    }
}

static void rdma_dereg(struct st_btl *btl, struct st_btl_reg *reg)
{
    struct tcp_key key;

    memcpy(&key, reg->key, sizeof key);
    if (reg->handle)
        rdma_leave_memory(tcp_of(btl), key.index);
    tcp_dereg(btl, reg);
}

const struct st_btl_rdma tcp_rdma_ops = {
    .get = rdma_get, .put = rdma_put, .put_notify = rdma_put_notify, .reg = tcp_reg, .dereg = rdma_dereg};

/* ---- progress ---- */

int tcp_rdma_progress(struct tcp_module *m)
{
    struct st_node now, *n;
    int events = 0;

    /* Each once; a lost path takes its own out of either list. */
    st_list_init(&now);
    while ((n = st_list_pop(&m->busy)) != NULL)
        st_list_append(&now, n);
    while ((n = st_list_pop(&now)) != NULL) {
        struct tcp_rdma *r = ST_CONTAINER(n, struct tcp_rdma, busy);
        st_list_append(&m->busy, n);
        events += tcp_rdma_run(m, r);
        tcp_rdma_say(m, r);
        if (r->due)
            r->due = 2;
        if (st_list_empty(&r->out) && st_list_empty(&r->asks) && !r->due && !r->say)
            st_list_remove(&r->busy);
    }
    while ((n = st_list_pop(&m->ended)) != NULL) {
        struct tcp_job *job = ST_CONTAINER(n, struct tcp_job, node);
        struct st_btl_op *user = job->user;
        int rc = job->rc;
        st_slab_put(&m->jobs, job);
        user->done(user, rc);
        events++;
    }
    return events;
}

bool tcp_rdma_may_sleep(const struct tcp_module *m)
{
    if (!st_list_empty(&m->ended))
        return false;
    for (const struct st_node *n = m->busy.next; n != &m->busy; n = n->next)
        if (tcp_rdma_has_room(ST_CONTAINER(n, struct tcp_rdma, busy)))
            return false;
    return true;
}
