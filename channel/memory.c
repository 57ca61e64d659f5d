/* Memory of channels: their records, which are counted, and long messages, of the context's pool, or of the C library
 * where there is none. */
#include "channel/memory.h"

#include <stdlib.h>

#include <strata/sdk/mpool.h>
#include "channel/channel.h"

#define MEMORY_PAGE 4096u

void *channel_alloc(struct channels *ch, size_t size)
{
    void *memory = calloc(1, size);

    if (memory)
        atomic_fetch_add_explicit(&ch->bytes, size, memory_order_relaxed);
    return memory;
}

void channel_free(struct channels *ch, void *memory, size_t size)
{
    if (memory)
        atomic_fetch_sub_explicit(&ch->bytes, size, memory_order_relaxed);
    free(memory);
}

int channel_memory_get(struct channels *ch, struct channel_memory *m, size_t length)
{
    struct st_mpool *pool = st_mpool(ch->w->context);
    size_t got = (length + MEMORY_PAGE) / MEMORY_PAGE * MEMORY_PAGE; /* one byte more: not 0 */

    if (got < length)
        return STRATA_ERR_NOMEM;
    *m = (struct channel_memory){.pooled = pool != NULL, .got = got};
    m->at = pool ? pool->ops->alloc(pool, got, &m->got) : aligned_alloc(MEMORY_PAGE, got);
    if (!m->at)
        return STRATA_ERR_NOMEM;
    ch->long_bytes += m->got;
    return STRATA_OK;
}

int channel_memory_register(struct channel_memory *m, struct st_btl *btl, size_t length, enum st_btl_use use)
{
    if (m->btl || !(btl->caps & ST_BTL_NEEDS_REG) || length == 0)
        return STRATA_OK;
    int rc = btl->rdma->reg(btl, m->at, length, use, &m->reg);
    if (rc == STRATA_OK)
        m->btl = btl;
    return rc;
}

void channel_memory_put(struct channels *ch, struct channel_memory *m)
{
    struct st_mpool *pool = st_mpool(ch->w->context);

    if (m->btl)
        m->btl->rdma->dereg(m->btl, &m->reg);
    if (m->at && m->got) {
        ch->long_bytes -= m->got;
        if (m->pooled)
            pool->ops->free(pool, m->at, m->got);
        else
            free(m->at);
    }
    *m = (struct channel_memory){0};
}
