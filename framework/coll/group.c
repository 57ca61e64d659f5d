/* Communicators with collectives: slots of the modules, failures of members. */
#include "framework/coll/group.h"

#include <limits.h>
#include <stdlib.h>

#include "framework/pml/comm.h"

int coll_group_number_of(const struct st_coll_group *head, int job_rank)
{
    const strata_comm_t *comm = head->comm;
    if (!comm->world)
        return job_rank < comm->size ? job_rank : -1;
    for (int i = 0; i < comm->size + head->n_local; i++)
        if (st_coll_job_rank(head, i) == job_rank)
            return i;
    return -1;
}

void coll_group_fail(struct group *g, int rank)
{
    strata_comm_t *comm = g->head.comm;
    int none = -1;
    if (!atomic_compare_exchange_strong(&g->head.failed, &none, rank))
        return;
    comm->ops->revoke(comm, INT_MIN + ST_COLL_TAGS);
    for (unsigned i = 0; i < g->colls->n; i++)
        if (g->slot[i] && g->colls->module[i]->ops->failed)
            g->colls->module[i]->ops->failed(g->slot[i]);
    coll_tell_failure(g, rank);
    st_worker_news(g->colls->w);
    if (g->colls->w->threaded)
        st_worker_wake(g->colls->w);
}

void st_coll_member_failed_locked(struct st_coll_group *head, int rank)
{
    coll_group_fail(ST_CONTAINER(head, struct group, head), rank);
}

void st_coll_member_failed(struct st_coll_group *head, int rank)
{
    struct group *g = ST_CONTAINER(head, struct group, head);
    if (atomic_load(&head->failed) >= 0)
        return;
    st_worker_lock(g->colls->w);
    coll_group_fail(g, rank);
    st_worker_unlock(g->colls->w);
}

/* Members that failed before the first collective. */
static void group_look_for_failed(struct group *g)
{
    int rank = coll_take_early(g->colls, &g->head);
    for (int64_t i = 0; rank < 0 && g->colls->w->n_failed != 0 && (i = st_worker_peer_next(g->colls->w, i)) >= 0; i++)
        if (st_worker_peer_known(g->colls->w, (int)i)->failed)
            rank = coll_group_number_of(&g->head, (int)i);
    if (rank >= 0)
        coll_group_fail(g, rank);
}

static int group_attach(struct group *g)
{
    for (unsigned i = 0; i < g->colls->n; i++) {
        struct st_coll *m = g->colls->module[i];
        if (g->head.n_local && !m->ops->inter)
            continue;
        int rc = m->ops->attach(m, &g->head, &g->slot[i]);
        if (rc != STRATA_OK)
            return rc;
    }
    return STRATA_OK;
}

static void group_detach(struct group *g)
{
    for (unsigned i = 0; i < g->colls->n; i++)
        if (g->slot[i])
            g->colls->module[i]->ops->detach(g->slot[i]);
    free(g);
}

int coll_group_of(struct colls *colls, strata_comm_t *comm, struct group **out)
{
    struct st_comm_tail *tail = st_comm_tail(comm);
    struct group *g = calloc(1, sizeof(*g)), *spare = g;
    int rc = g ? STRATA_OK : STRATA_ERR_NOMEM;
    if (rc != STRATA_OK)
        return rc;
    g->head.comm = comm;
    g->head.local = tail->local;
    g->head.n_local = tail->n_local;
    g->colls = colls;
    atomic_init(&g->head.failed, -1);
    st_worker_lock(colls->w);
    struct st_coll_group *first = atomic_load_explicit(&tail->coll, memory_order_relaxed);
    if (first) { /* another thread was faster */
        g = ST_CONTAINER(first, struct group, head);
    } else if ((rc = group_attach(g)) == STRATA_OK) {
        st_list_append(&colls->groups, &g->node);
        colls->n_groups++;
        group_look_for_failed(g);
        atomic_store_explicit(&tail->coll, &g->head, memory_order_release);
        spare = NULL;
    }
    st_worker_unlock(colls->w);
    if (spare)
        group_detach(spare);
    if (rc == STRATA_OK)
        *out = g;
    return rc;
}

void coll_group_free(struct group *g)
{
    struct colls *colls = g->colls;
    st_worker_lock(colls->w);
    st_list_remove(&g->node);
    colls->n_groups--;
    st_worker_unlock(colls->w);
    group_detach(g);
}
