/* Checks of the arguments of collectives: what a kind needs, and that no length overflows. */
#include "framework/coll/check.h"

static bool check_rooted(strata_coll_kind_t kind)
{
    return kind == STRATA_BCAST || kind == STRATA_REDUCE || kind == STRATA_GATHER || kind == STRATA_SCATTER;
}

static bool check_reduces(strata_coll_kind_t kind)
{
    return kind == STRATA_REDUCE || kind == STRATA_ALLREDUCE || kind == STRATA_REDUCE_SCATTER_BLOCK ||
           kind == STRATA_SCAN;
}

/* Blocks that lie one behind the other somewhere, or are kept so on the way. */
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

int coll_check(const strata_comm_t *comm, const strata_coll_t *c)
{
    if (!comm || !c || c->size != sizeof(*c) || (unsigned)c->kind >= STRATA_COLL_KINDS)
        return STRATA_ERR_ARG;
    if (comm->inter)
        return STRATA_ERR_UNSUPPORTED;
    if (c->kind == STRATA_BARRIER)
        return STRATA_OK;
    if (check_rooted(c->kind) && (c->root < 0 || c->root >= comm->size))
        return STRATA_ERR_RANK;
    if (c->element == 0 || (check_reduces(c->kind) && !c->reduce))
        return STRATA_ERR_ARG;
    if (c->kind == STRATA_ALLGATHERV || c->kind == STRATA_ALLTOALLV)
        return check_lists(comm, c);
    return check_fits(c->count, c->element, check_blocks(c->kind, comm->size)) ? STRATA_OK : STRATA_ERR_ARG;
}
