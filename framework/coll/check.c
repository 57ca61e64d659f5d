/* Checks of the arguments of collectives: what a kind needs, and that no length overflows. */
#include "framework/coll/check.h"

#include "framework/pml/comm.h"

static bool check_rooted(strata_coll_kind_t kind)
{
    return kind == STRATA_BCAST || kind == STRATA_REDUCE || kind == STRATA_GATHER || kind == STRATA_SCATTER;
}

static bool check_reduces(strata_coll_kind_t kind)
{
    return kind == STRATA_REDUCE || kind == STRATA_ALLREDUCE || kind == STRATA_REDUCE_SCATTER_BLOCK ||
           kind == STRATA_SCAN;
}

/* Blocks that lie one behind the other somewhere, or are kept so on the way. `size`: of the larger group. */
static size_t check_blocks(strata_coll_kind_t kind, int size)
{
    switch (kind) {
    case STRATA_GATHER:
    case STRATA_SCATTER:
    case STRATA_ALLGATHER:
    case STRATA_ALLTOALL:
    case STRATA_REDUCE_SCATTER_BLOCK:
        return (size_t)size;
    default:
        return 1;
    }
}

static bool check_fits(size_t count, size_t element, size_t blocks)
{
    size_t bytes;
    return !__builtin_mul_overflow(count, element, &bytes) && !__builtin_mul_overflow(bytes, blocks, &bytes) &&
           bytes <= PTRDIFF_MAX;
}

static bool check_list_fits(const size_t *counts, const size_t *offsets, size_t element, int size)
{
    size_t end;
    for (int i = 0; i < size; i++)
        if (__builtin_add_overflow(offsets[i], counts[i], &end) || !check_fits(end, element, 1))
            return false;
    return true;
}

/* Kinds whose sizes differ by rank. */
static int check_lists(const strata_comm_t *comm, const strata_coll_t *c)
{
    bool sends = c->kind == STRATA_ALLTOALLV && c->send != STRATA_IN_PLACE;
    if (!c->recv_counts || !c->recv_offsets || (sends && (!c->send_counts || !c->send_offsets)))
        return STRATA_ERR_ARG;
    if (!check_list_fits(c->recv_counts, c->recv_offsets, c->element, comm->size) ||
        (sends && !check_list_fits(c->send_counts, c->send_offsets, c->element, comm->size)))
        return STRATA_ERR_ARG;
    return STRATA_OK;
}

/* What holds between two groups besides. `local`: members of the own one. */
static int check_inter(const strata_comm_t *comm, const strata_coll_t *c, int local)
{
    size_t all;
    if (local == 0 || c->kind == STRATA_SCAN)
        return STRATA_ERR_UNSUPPORTED;
    if (c->kind == STRATA_BARRIER)
        return STRATA_OK;
    if (c->send == STRATA_IN_PLACE && c->kind != STRATA_BCAST)
        return STRATA_ERR_ARG;
    if (c->kind == STRATA_REDUCE_SCATTER_BLOCK &&
        (__builtin_mul_overflow(c->count, (size_t)local, &all) || all % (size_t)comm->size != 0))
        return STRATA_ERR_ARG;
    if (c->kind == STRATA_ALLGATHERV && !check_fits(c->count, c->element ? c->element : 1, 1))
        return STRATA_ERR_ARG;
    return STRATA_OK;
}

static bool check_root(const strata_comm_t *comm, int root)
{
    return (root >= 0 && root < comm->size) || (comm->inter && (root == STRATA_ROOT || root == STRATA_PROC_NULL));
}

int coll_check(strata_comm_t *comm, const strata_coll_t *c)
{
    if (!comm || !c || c->size != sizeof(*c) || (unsigned)c->kind >= STRATA_COLL_KINDS)
        return STRATA_ERR_ARG;
    int local = comm->inter ? st_comm_tail(comm)->n_local : 0;
    int rc = comm->inter ? check_inter(comm, c, local) : STRATA_OK;
    if (rc != STRATA_OK || c->kind == STRATA_BARRIER)
        return rc;
    if (check_rooted(c->kind) && !check_root(comm, c->root))
        return STRATA_ERR_RANK;
    if (check_rooted(c->kind) && c->root == STRATA_PROC_NULL)
        return STRATA_OK;
    if (c->element == 0 || (check_reduces(c->kind) && !c->reduce))
        return STRATA_ERR_ARG;
    if (c->kind == STRATA_ALLGATHERV || c->kind == STRATA_ALLTOALLV)
        return check_lists(comm, c);
    int most = comm->size > local ? comm->size : local;
    return check_fits(c->count, c->element, check_blocks(c->kind, most)) ? STRATA_OK : STRATA_ERR_ARG;
}
