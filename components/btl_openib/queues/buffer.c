/* Pools of registered buffers. They grow in slabs of whole pages, each registered as one region, and are freed
 * together. */
#include "queues/queue.h"

#include <stdlib.h>
#include <string.h>
#include <strata/sdk/mpool.h>
#include "device/device.h"

struct ib_slab {
    struct ib_slab *next;
    struct ibv_mr *mr;
    void *memory;
    size_t bytes;
    uint32_t n;
    struct ib_buffer buffer[];
};

#define LINE 64u

void ib_pool_init(struct ib_pool *p, const struct ib_device *dev, uint32_t size, uint32_t per_slab, uint32_t head)
{
    *p = (struct ib_pool){.dev = dev, .size = size, .per_slab = per_slab, .lead = (LINE - head % LINE) % LINE};
}

/* Bytes from one buffer to the next. */
static size_t buffer_stride(const struct ib_pool *p)
{
    return p->lead ? ((size_t)p->lead + p->size + LINE - 1) / LINE * LINE : p->size;
}

int ib_pool_grow(struct ib_pool *p)
{
    struct st_mpool *pool = st_mpool(p->dev->context);
    struct ib_slab *s = malloc(sizeof *s + p->per_slab * sizeof s->buffer[0]);

    if (!s)
        return STRATA_ERR_NOMEM;
    s->memory = pool->ops->alloc(pool, buffer_stride(p) * p->per_slab, &s->bytes);
    s->mr = s->memory ? ibv_reg_mr(p->dev->pd, s->memory, s->bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (s->memory && !s->mr && st_mem_release_spare(p->dev->context))
        s->mr = ibv_reg_mr(p->dev->pd, s->memory, s->bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!s->mr) {
        if (s->memory)
            pool->ops->free(pool, s->memory, s->bytes);
        free(s);
        return STRATA_ERR_NOMEM;
    }
    s->n = p->per_slab;
    s->next = p->slabs;
    p->slabs = s;
    for (uint32_t i = p->per_slab; i-- > 0;) {
        struct ib_buffer *b = &s->buffer[i];
        *b = (struct ib_buffer){.data = (char *)s->memory + i * buffer_stride(p) + p->lead, .lkey = s->mr->lkey};
        b->sge = (struct ibv_sge){(uintptr_t)b->data, p->size, b->lkey};
        b->wr = (struct ibv_recv_wr){.wr_id = (uintptr_t)b, .sg_list = &b->sge, .num_sge = 1};
        ib_buffer_put(p, b);
    }
    return STRATA_OK;
}

void ib_pool_take_back(struct ib_pool *p, const struct ib_peer *peer)
{
    for (struct ib_slab *s = p->slabs; s; s = s->next)
        for (uint32_t i = 0; i < s->n; i++) {
            if (s->buffer[i].peer != peer)
                continue;
            s->buffer[i].peer = NULL;
            ib_buffer_put(p, &s->buffer[i]);
        }
}

void ib_pool_all_back(struct ib_pool *p)
{
    p->free = NULL;
    p->n_free = 0;
    for (struct ib_slab *s = p->slabs; s; s = s->next)
        for (uint32_t i = s->n; i-- > 0;)
            ib_buffer_put(p, &s->buffer[i]);
}

void ib_pool_destroy(struct ib_pool *p)
{
    for (struct ib_slab *s = p->slabs, *next; s; s = next) {
        struct st_mpool *pool = st_mpool(p->dev->context);
        next = s->next;
        (void)ibv_dereg_mr(s->mr);
        pool->ops->free(pool, s->memory, s->bytes);
        free(s);
    }
    p->slabs = NULL;
    p->free = NULL;
    p->n_free = 0;
}

size_t ib_pool_bytes(const struct ib_pool *p)
{
    size_t bytes = 0;

    for (const struct ib_slab *s = p->slabs; s; s = s->next)
        bytes += s->bytes + sizeof *s + s->n * sizeof s->buffer[0];
    return bytes;
}
