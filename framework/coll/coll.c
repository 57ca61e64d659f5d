/* The public interface of collectives: start. */
#include <strata/sdk/coll.h>

#include "framework/base/context.h"
#include "framework/coll/check.h"
#include "framework/coll/group.h"
#include "framework/pml/comm.h"

/* From module `i` on. */
static int coll_start_from(const struct group *g, unsigned i, const strata_coll_t *c, strata_coll_request_t **req)
{
    int rc = STRATA_ERR_UNSUPPORTED;
    for (; i < g->colls->n && rc == STRATA_ERR_UNSUPPORTED; i++)
        if (g->slot[i])
            rc = g->colls->module[i]->ops->start(g->slot[i], c, req);
    return rc;
}

int st_coll_start_below(struct st_coll_slot *slot, const strata_coll_t *c, strata_coll_request_t **out)
{
    const struct group *g = ST_CONTAINER(slot->group, struct group, head);
    unsigned i = 0;
    while (g->slot[i] != slot)
        i++;
    return coll_start_from(g, i + 1, c, out);
}

/* The components are opened by the first collective. */
static int coll_ready(struct colls *colls)
{
    int rc = STRATA_OK;
    if (!colls)
        return STRATA_ERR_NOT_FOUND;
    if (!atomic_load_explicit(&colls->open, memory_order_acquire)) {
        st_worker_lock(colls->w);
        rc = coll_open(colls);
        st_worker_unlock(colls->w);
    }
    return rc == STRATA_OK && colls->n == 0 ? STRATA_ERR_NOT_FOUND : rc;
}

static int coll_begin(strata_comm_t *comm, const strata_coll_t *c, strata_coll_request_t **req)
{
    struct colls *colls = comm->worker->context->coll;
    struct st_coll_group *head = atomic_load_explicit(&st_comm_tail(comm)->coll, memory_order_acquire);
    struct group *g = head ? ST_CONTAINER(head, struct group, head) : NULL;
    int rc = g ? STRATA_OK : coll_ready(colls);
    if (rc == STRATA_OK && !g)
        rc = coll_group_of(colls, comm, &g);
    return rc == STRATA_OK ? coll_start_from(g, 0, c, req) : rc;
}

int strata_coll_start(strata_comm_t *comm, const strata_coll_t *c, strata_coll_request_t **req)
{
    int rc = req ? coll_check(comm, c) : STRATA_ERR_ARG;
    return rc == STRATA_OK ? coll_begin(comm, c, req) : rc;
}

int strata_coll(strata_comm_t *comm, const strata_coll_t *c)
{
    strata_coll_request_t *req = NULL;
    int rc = strata_coll_start(comm, c, &req);
    return rc == STRATA_OK ? strata_coll_wait(&req, NULL) : rc;
}
