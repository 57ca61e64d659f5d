/* Matching contexts. */
#include "framework/pml/comm.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "framework/base/context.h"
#include "framework/coll/coll_select.h"
#include <strata/sdk/rte.h>

static int *comm_copy(const int *ranks, int n)
{
    int *copy = malloc((size_t)n * sizeof(int));
    if (copy)
        memcpy(copy, ranks, (size_t)n * sizeof(int));
    return copy;
}

static int comm_copy_members(strata_comm_t *comm, const strata_comm_spec_t *spec)
{
    struct st_comm_tail *tail = st_comm_tail(comm);
    if (spec->world && !(comm->world = comm_copy(spec->world, spec->n_ranks)))
        return STRATA_ERR_NOMEM;
    if (!spec->inter || spec->n_local == 0)
        return STRATA_OK;
    tail->n_local = spec->n_local;
    tail->local = comm_copy(spec->local, spec->n_local);
    return tail->local ? STRATA_OK : STRATA_ERR_NOMEM;
}

static void comm_free(strata_comm_t *comm)
{
    free(st_comm_tail(comm)->local);
    free(comm->world);
    free(comm);
}

int st_comm_make(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out)
{
    const struct st_pml_ops *ops = s->pml->ops;
    struct strata_comm *comm = NULL;
    /* On a cache line of its own: its counters are written for every message. */
    size_t whole = st_comm_tail_at(ops) + sizeof(struct st_comm_tail);
    if (posix_memalign((void **)&comm, 64, whole) != 0)
        return STRATA_ERR_NOMEM;
    memset(comm, 0, whole);
    *comm = (struct strata_comm){.ops = ops,
                                 .pml = s->pml,
                                 .worker = s->worker,
                                 .user = spec->user,
                                 .id = spec->id,
                                 .rank = spec->rank,
                                 .size = spec->n_ranks,
                                 .tag_min = s->host ? INT_MIN : 0,
                                 .inter = spec->inter != 0};
    int rc = comm_copy_members(comm, spec);
    if (rc == STRATA_OK)
        rc = ops->comm_add(comm);
    if (rc != STRATA_OK) {
        comm_free(comm);
        return rc;
    }
    st_coll_created(comm);
    *out = comm;
    return STRATA_OK;
}

void st_comm_destroy(strata_comm_t *comm)
{
    st_coll_detach(comm);
    comm->ops->comm_del(comm);
    comm_free(comm);
}

static bool pml_ranks_exist(const strata_t *s, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] < 0 || ranks[i] >= s->rte->size)
            return false;
    return true;
}

static bool pml_members_exist(const strata_t *s, const strata_comm_spec_t *spec)
{
    int me = s->rte->rank;
    if (!spec->world)
        return spec->n_ranks <= s->rte->size && spec->rank == me && !spec->inter;
    if (!pml_ranks_exist(s, spec->world, spec->n_ranks))
        return false;
    if (!spec->inter)
        return spec->world[spec->rank] == me;
    return spec->n_local == 0 || (spec->rank < spec->n_local && pml_ranks_exist(s, spec->local, spec->n_local) &&
                                  spec->local[spec->rank] == me);
}

int strata_comm_create(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out)
{
    if (!s || !spec || !out || spec->size != sizeof(*spec) || spec->id == 0 || spec->n_ranks < 1)
        return STRATA_ERR_ARG;
    if (spec->inter && (spec->n_local < 0 || (spec->n_local > 0 && !spec->local)))
        return STRATA_ERR_ARG;
    if (spec->rank < 0 || (spec->rank >= spec->n_ranks && !spec->inter) || !pml_members_exist(s, spec))
        return STRATA_ERR_RANK;
    return st_comm_make(s, spec, out);
}

int strata_comm_free(strata_comm_t *comm)
{
    if (!comm || comm == comm->worker->context->world) /* the world is the context's */
        return STRATA_ERR_ARG;
    st_comm_destroy(comm);
    return STRATA_OK;
}

int strata_comm_rank(const strata_comm_t *comm)
{
    return comm->rank;
}

int strata_comm_size(const strata_comm_t *comm)
{
    return comm->size;
}

void *strata_comm_user(const strata_comm_t *comm)
{
    return comm->user;
}

strata_t *strata_comm_context(const strata_comm_t *comm)
{
    return comm->worker->context;
}
