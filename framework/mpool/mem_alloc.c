/* Memory for users, registered with every device in use before it is sent for the first time. */
#define _GNU_SOURCE 1
#include <search.h>
#include <stdlib.h>

#include <strata/host.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>
#include "framework/base/context.h"
#include "framework/mpool/mpool_select.h"

/* What was allocated at once, and its registrations by module. The context has them in a tree by address: a program may
 * have very many, and give them back in any order. */
struct st_mem_block {
    void *memory;
    size_t got, n_regs;
    struct st_btl_reg reg[]; /* one for each of the context's modules; handle NULL: none */
};

static void lock(strata_t *s)
{
    if (s->pml && s->pml->ops->lock)
        s->pml->ops->lock(s->pml);
}

static void unlock(strata_t *s)
{
    if (s->pml && s->pml->ops->unlock)
        s->pml->ops->unlock(s->pml);
}

/* A registration that cannot be had is no failure: it is tried again when the memory is sent. */
static void register_block(strata_t *s, struct st_mem_block *b)
{
    if (s->rcache && s->rcache->ops->hold)
        s->rcache->ops->hold(s->rcache, (uintptr_t)b->memory, (uintptr_t)b->memory + b->got);
    for (size_t i = 0; i < b->n_regs; i++) {
        struct st_btl *btl = s->btls[i];
        b->reg[i].handle = NULL;
        if ((btl->caps & ST_BTL_NEEDS_REG) && btl->ops->reg(btl, b->memory, b->got, &b->reg[i]) != STRATA_OK)
            b->reg[i].handle = NULL;
    }
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct st_mem_block *)a)->memory,
              y = (uintptr_t)((const struct st_mem_block *)b)->memory;

    return (x > y) - (x < y);
}

/* The block at `memory`, or NULL. */
static struct st_mem_block *find(strata_t *s, void *memory)
{
    const struct st_mem_block key = {.memory = memory};
    void **node = tfind(&key, &s->mem_blocks, by_address);

    return node ? *node : NULL;
}

static void free_block(strata_t *s, struct st_mem_block *b, bool keep)
{
    uintptr_t from = (uintptr_t)b->memory;

    s->mem.n--;
    s->mem.bytes -= b->got;
    for (size_t i = 0; i < b->n_regs; i++)
        if (b->reg[i].handle)
            s->btls[i]->ops->dereg(s->btls[i], &b->reg[i]);
    if (s->rcache) {
        if (s->rcache->ops->hold)
            s->rcache->ops->unhold(s->rcache, from, from + b->got);
        /* Ourselves: it may be that nothing tells the cache. */
        s->rcache->ops->invalidate(s->rcache, from, from + b->got);
        s->rcache->ops->apply(s->rcache);
    }
    if (!keep)
        s->mpool->ops->free(s->mpool, b->memory, b->got);
    free(b);
}

int strata_mem_alloc(strata_t *s, size_t len, void **memory)
{
    if (!s || !memory)
        return STRATA_ERR_ARG;
    if (!s->mpool)
        return STRATA_ERR_UNSUPPORTED;
    struct st_mem_block *b = malloc(sizeof(*b) + s->n_btls * sizeof(b->reg[0]));
    if (!b)
        return STRATA_ERR_NOMEM;
    b->n_regs = s->n_btls;
    lock(s);
    b->memory = s->mpool->ops->alloc(s->mpool, len ? len : 1, &b->got);
    if (b->memory && !tsearch(b, &s->mem_blocks, by_address)) {
        s->mpool->ops->free(s->mpool, b->memory, b->got);
        b->memory = NULL;
    }
    if (b->memory) {
        register_block(s, b);
        s->mem.n++;
        s->mem.bytes += b->got;
        if (s->mem.bytes > s->mem.bytes_max)
            s->mem.bytes_max = s->mem.bytes;
        *memory = b->memory;
    }
    unlock(s);
    if (b->memory)
        return STRATA_OK;
    free(b);
    return STRATA_ERR_NOMEM;
}

int strata_mem_free(strata_t *s, void *memory)
{
    if (!s)
        return STRATA_ERR_ARG;
    lock(s);
    struct st_mem_block *b = find(s, memory);
    if (b) {
        tdelete(b, &s->mem_blocks, by_address);
        free_block(s, b, false);
    }
    unlock(s);
    return b ? STRATA_OK : STRATA_ERR_ARG;
}

int strata_host_memory_helps(const strata_t *s)
{
    bool helps = s->mpool_by_name;

    for (size_t i = 0; i < s->n_btls; i++)
        helps = helps || (s->btls[i]->caps & ST_BTL_NEEDS_REG);
    return s->mpool && helps;
}

void strata_host_keep_memory(strata_t *s)
{
    s->keep_memory = true;
}

void st_mem_free_all(strata_t *s)
{
    while (s->mem_blocks) {
        struct st_mem_block *b = *(void **)s->mem_blocks; /* the root: nodes begin with what was put there */
        tdelete(b, &s->mem_blocks, by_address);
        free_block(s, b, s->keep_memory);
    }
}
