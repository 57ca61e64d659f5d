/* Messages that are not copied: the device gathers the head from a buffer of ours and the data from the caller's
 * memory, which must be registered. Registering costs more than a copy, so it is done when a message is sent from a
 * page that was sent from lately. */
#include <strata/sdk/hash.h>
#include "module.h"

#define HEAD_SIZE 64u /* bytes of a buffer for a head: IB_HEAD and ST_BTL_HDR_MAX fit */
#define HEADS     32u /* made at a time */
_Static_assert(sizeof(struct ib_head) + ST_BTL_HDR_MAX <= HEAD_SIZE, "a head fits");

int ib_zcopy_open(struct ib_module *m)
{
    ib_pool_init(&m->zcopy.heads, &m->dev, HEAD_SIZE, HEADS, 0);
    return st_slab_init(&m->zcopy.slab, sizeof(struct ib_zcopy), HEADS, HEADS, 0);
}

/* The registration of memory that was sent from before, or NULL. A slot of `seen` holds the page that was sent from
 * last, of those that fall on it; inverted when it could not be registered. */
static struct st_rcache_entry *zcopy_registered(struct ib_module *m, const void *data, uint32_t len)
{
    uint32_t page = (uint32_t)((uintptr_t)data / m->registrar.cache->page);
    uint32_t *seen = &m->zcopy.seen[st_hash(page) >> 56];
    struct st_rcache_entry *e = NULL;

    _Static_assert(IB_SEEN == 1u << 8, "the highest bits of the product choose");
    if (*seen == page) { /* registered as the source of a get is, so that one serves both */
        if (ST_UNLIKELY(m->registrar.cache->ops->get(m->registrar.cache, &m->registrar.client, data, len,
                                                     ST_RCACHE_REMOTE_READ, &e) != STRATA_OK))
            *seen = ~page;
    } else if (*seen != ~page) {
        *seen = page;
    }
    return e;
}

struct st_btl_op *ib_zcopy_free(struct ib_module *m, struct ib_zcopy *z)
{
    struct st_btl_op *op = z->op;

    m->registrar.cache->ops->put(m->registrar.cache, z->memory);
    if (z->head)
        ib_buffer_put(&m->zcopy.heads, z->head);
    st_slab_put(&m->zcopy.slab, z);
    return op;
}

struct ib_zcopy *ib_zcopy_make(struct ib_module *m, const void *data, uint32_t len, struct st_btl_op *op)
{
    struct st_rcache_entry *e = zcopy_registered(m, data, len);
    struct ib_zcopy *z = e ? st_slab_get(&m->zcopy.slab) : NULL;

    if (!z) {
        if (e)
            m->registrar.cache->ops->put(m->registrar.cache, e);
        return NULL;
    }
    *z = (struct ib_zcopy){.head = ib_buffer_get(&m->zcopy.heads), .memory = e, .op = op};
    if (ST_LIKELY(z->head != NULL))
        return z;
    (void)ib_zcopy_free(m, z);
    return NULL;
}
