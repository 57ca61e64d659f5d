/* Registered memory of rings. What peers write to is of a kind that those on this machine can map, where there is one.
 */
#include <strata/sdk/mpool.h>
#include "module.h"

static int ring_allocate(struct st_mpool *pool, size_t bytes, bool shared, struct st_shared_piece *piece)
{
    if (shared && pool->ops->alloc_shared(pool, bytes, piece) == STRATA_OK)
        return STRATA_OK;
    *piece = (struct st_shared_piece){.fd = -1};
    piece->memory = pool->ops->alloc(pool, bytes, &piece->length);
    return piece->memory ? STRATA_OK : STRATA_ERR_NOMEM;
}

static void ring_release(struct st_mpool *pool, const struct st_shared_piece *piece)
{
    if (piece->fd >= 0)
        pool->ops->free_shared(pool, piece);
    else
        pool->ops->free(pool, piece->memory, piece->length);
}

int ib_ring_memory_get(struct ib_module *m, size_t bytes, unsigned access, struct ib_ring_memory *out)
{
    struct st_mpool *pool = st_mpool(m->btl.context);
    struct ib_ring_memory memory;

    if (ring_allocate(pool, bytes, access & IBV_ACCESS_REMOTE_WRITE, &memory.piece) != STRATA_OK)
        return STRATA_ERR_NOMEM;
    /* Never with relaxed ordering: the last byte says that the others are there. */
    memory.mr = ibv_reg_mr(m->dev.pd, memory.piece.memory, memory.piece.length, access);
    if (!memory.mr) {
        ring_release(pool, &memory.piece);
        return STRATA_ERR_NOMEM;
    }
    *out = memory;
    return STRATA_OK;
}

void ib_ring_memory_put(struct ib_module *m, struct ib_ring_memory *memory)
{
    if (!memory->mr)
        return;
    (void)ibv_dereg_mr(memory->mr);
    ring_release(st_mpool(m->btl.context), &memory->piece);
    memory->mr = NULL;
}
