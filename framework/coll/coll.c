/* The public interface of collectives: checks of arguments, the communicator's slot, completion. */
#include <strata/sdk/coll.h>

#include "framework/base/context.h"
#include "framework/pml/comm.h"

static bool coll_rooted(strata_coll_kind_t kind)
{
    return kind == STRATA_BCAST || kind == STRATA_REDUCE || kind == STRATA_GATHER || kind == STRATA_SCATTER;
}

static bool coll_reduces(strata_coll_kind_t kind)
{
    return kind == STRATA_REDUCE || kind == STRATA_ALLREDUCE || kind == STRATA_REDUCE_SCATTER_BLOCK ||
           kind == STRATA_SCAN;
}

static int coll_check(const strata_comm_t *comm, const strata_coll_t *c)
{
    if (!comm || !c || c->size != sizeof(*c) || (unsigned)c->kind >= STRATA_COLL_KINDS)
        return STRATA_ERR_ARG;
    if (comm->inter)
        return STRATA_ERR_UNSUPPORTED;
    if (coll_rooted(c->kind) && (c->root < 0 || c->root >= comm->size))
        return STRATA_ERR_RANK;
    if (coll_reduces(c->kind) && !c->reduce)
        return STRATA_ERR_ARG;
    if ((c->kind == STRATA_ALLGATHERV || c->kind == STRATA_ALLTOALLV) && (!c->recv_counts || !c->recv_offsets))
        return STRATA_ERR_ARG;
    if (c->kind == STRATA_ALLTOALLV && c->send != STRATA_IN_PLACE && (!c->send_counts || !c->send_offsets))
        return STRATA_ERR_ARG;
    return c->element == 0 && c->kind != STRATA_BARRIER ? STRATA_ERR_ARG : STRATA_OK;
}

/* Threads may use a communicator for the first time at once: the slot of one of them stays. */
static int coll_slot(strata_comm_t *comm, struct st_coll_slot **out)
{
    struct st_coll *coll = comm->worker->context->coll;
    struct st_coll_slot *slot = atomic_load_explicit(&st_comm_tail(comm)->coll, memory_order_acquire), *none = NULL;
    if (!slot) {
        if (!coll)
            return STRATA_ERR_NOT_FOUND;
        int rc = coll->ops->attach(coll, comm, &slot);
        if (rc != STRATA_OK)
            return rc;
        if (!atomic_compare_exchange_strong_explicit(&st_comm_tail(comm)->coll, &none, slot, memory_order_acq_rel,
                                                     memory_order_acquire)) {
            coll->ops->detach(slot);
            slot = none;
        }
    }
    *out = slot;
    return STRATA_OK;
}

int strata_coll_start(strata_comm_t *comm, const strata_coll_t *c, strata_coll_request_t **req)
{
    struct st_coll_slot *slot = NULL;
    int rc = req ? coll_check(comm, c) : STRATA_ERR_ARG;
    if (rc == STRATA_OK)
        rc = coll_slot(comm, &slot);
    return rc == STRATA_OK ? slot->coll->ops->start(slot, comm, c, req) : rc;
}

static bool coll_done(void *arg)
{
    const strata_coll_request_t *r = arg;
    return atomic_load_explicit(&r->done, memory_order_acquire);
}

static int coll_take(strata_coll_request_t **req, int *failed)
{
    strata_coll_request_t *r = *req;
    int rc = r->error;
    if (failed)
        *failed = r->failed;
    *req = NULL;
    r->free(r);
    return rc;
}

int strata_coll_wait(strata_coll_request_t **req, int *failed)
{
    if (!req || !*req)
        return STRATA_ERR_ARG;
    if (!coll_done(*req))
        st_worker_wait((*req)->worker, coll_done, *req);
    return coll_take(req, failed);
}

int strata_coll_test(strata_coll_request_t **req, int *done, int *failed)
{
    if (!req || !*req || !done)
        return STRATA_ERR_ARG;
    if (!coll_done(*req))
        (void)strata_progress((*req)->worker->context);
    *done = coll_done(*req);
    return *done ? coll_take(req, failed) : STRATA_OK;
}

int strata_coll(strata_comm_t *comm, const strata_coll_t *c)
{
    strata_coll_request_t *req = NULL;
    int rc = strata_coll_start(comm, c, &req);
    return rc == STRATA_OK ? strata_coll_wait(&req, NULL) : rc;
}
