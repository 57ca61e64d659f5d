/* Matching contexts. */
#include "framework/pml/comm.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "framework/base/context.h"
#include "framework/coll/coll_select.h"
#include <strata/sdk/rte.h>

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
    if (spec->world) {
        size_t bytes = (size_t)spec->n_ranks * sizeof(int);
        comm->world = malloc(bytes);
        if (!comm->world) {
            free(comm);
            return STRATA_ERR_NOMEM;
        }
        memcpy(comm->world, spec->world, bytes);
    }
    int rc = ops->comm_add(comm);
    if (rc != STRATA_OK) {
        free(comm->world);
        free(comm);
        return rc;
    }
    *out = comm;
    return STRATA_OK;
}

void st_comm_destroy(strata_comm_t *comm)
{
    st_coll_detach(comm);
    comm->ops->comm_del(comm);
    free(comm->world);
    free(comm);
}

static bool pml_members_exist(const strata_t *s, const strata_comm_spec_t *spec)
{
    int size = s->rte->size;
    if (!spec->world)
        return spec->n_ranks <= size && spec->rank == s->rte->rank && !spec->inter;
    for (int i = 0; i < spec->n_ranks; i++)
        if (spec->world[i] < 0 || spec->world[i] >= size)
            return false;
    return spec->inter || spec->world[spec->rank] == s->rte->rank;
}

int strata_comm_create(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out)
{
    if (!s || !spec || !out || spec->size != sizeof(*spec) || spec->id == 0 || spec->n_ranks < 1)
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
