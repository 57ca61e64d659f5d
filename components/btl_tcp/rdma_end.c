/* The state of a peer's puts and gets: made, and ended with its connection. */
#include <stdlib.h>
#include <sys/random.h>
#include "bulk.h"
#include "rdma.h"

void tcp_rdma_init(struct tcp_module *m)
{
    st_list_init(&m->busy);
    st_list_init(&m->ended);
    (void)st_slab_init(&m->jobs, sizeof(struct tcp_job), 16, 32, 0);
    if (getrandom(&m->secrets, sizeof m->secrets, 0) != (ssize_t)sizeof m->secrets)
        m->secrets = (uint64_t)(uintptr_t)m;
}

void tcp_rdma_fini(struct tcp_module *m)
{
    st_slab_destroy(&m->jobs);
    free(m->regs);
}

void tcp_rdma_free(struct tcp_peer *p)
{
    free(p->rdma);
    p->rdma = NULL;
}

struct tcp_rdma *tcp_rdma_of(struct tcp_module *m, struct tcp_peer *p)
{
    struct tcp_rdma *r = p->rdma;

    if (r)
        return r;
    r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->peer = p;
    st_list_init(&r->busy);
    st_list_init(&r->asks);
    st_list_init(&r->out);
    st_list_init(&r->sent);
    st_list_init(&r->gets);
    m->n_rdma++;
    return p->rdma = r;
}

/* ---- the end of a job ---- */

void tcp_job_end(struct tcp_module *m, struct tcp_rdma *r, struct tcp_job *job, int rc)
{
    st_list_remove(&job->node);
    if (r->sending == job)
        r->sending = NULL;
    if (job->kind == TCP_JOB_ANSWER) {
        r->n_answers--;
        st_slab_put(&m->jobs, job);
        return;
    }
    r->n_ops--;
    job->rc = rc;
    st_list_append(&m->ended, &job->node);
}

/* Ends the jobs of a list, those of a kind: answers, or this process's own; of the latter perhaps only notices. */
static void rdma_end_list(struct tcp_rdma *r, struct st_node *list, bool answers, bool notices, int rc)
{
    struct tcp_module *m = tcp_of(r->peer->ep.btl);

    for (struct st_node *n = list->next, *next; n != list; n = next) {
        struct tcp_job *job = ST_CONTAINER(n, struct tcp_job, node);
        next = n->next;
        if ((job->kind == TCP_JOB_ANSWER) == answers && (!notices || job->notify))
            tcp_job_end(m, r, job, rc);
    }
}

void tcp_rdma_end_ops(struct tcp_rdma *r, bool notices, int rc)
{
    rdma_end_list(r, &r->asks, false, notices, rc);
    rdma_end_list(r, &r->out, false, notices, rc);
    rdma_end_list(r, &r->sent, false, notices, rc);
    rdma_end_list(r, &r->gets, false, notices, rc);
}

static void rdma_end_answers(struct tcp_rdma *r)
{
    rdma_end_list(r, &r->out, true, false, STRATA_OK);
    r->due = r->say = 0;
    r->refused = false;
    if (st_list_empty(&r->out) && st_list_empty(&r->asks))
        st_list_remove(&r->busy);
}

/* ---- the connection ---- */

void tcp_rdma_renew(struct tcp_peer *p)
{
    struct tcp_rdma *r = p->rdma;

    if (!r)
        return;
    r->n_sent = r->n_taken = 0;
    r->taker = NULL;
    r->zerocopy = (struct tcp_zerocopy){.mode = TCP_ZEROCOPY_OPEN};
    r->more = false;
}

void tcp_rdma_leave(struct tcp_peer *p, const struct tcp_conn *c)
{
    struct tcp_rdma *r = p->rdma;

    if (!r)
        return;
    if (r->taker == c)
        r->taker = NULL;
    if (c == tcp_bulk_now(p) || !c->bulk)
        r->sending = NULL;
    rdma_end_answers(r);
}

void tcp_rdma_lost(struct tcp_peer *p)
{
    struct tcp_rdma *r = p->rdma;

    if (!r)
        return;
    tcp_rdma_end_ops(r, false, STRATA_ERR_PEER);
    rdma_end_answers(r);
}

void tcp_rdma_left(struct tcp_peer *p)
{
    if (p->rdma)
        tcp_rdma_end_ops(p->rdma, true, STRATA_OK);
}
