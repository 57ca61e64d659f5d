/* Memory for users, registered with every device in use before it is sent for the first time. */
#include <stdlib.h>

#include <strata/sdk/mpool.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>
#include "framework/base/context.h"
#include "framework/mpool/mpool_select.h"

/* What was allocated at once, and its registrations by module. */
struct st_mem_block {
    struct st_mem_block *next;
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

static void free_block(strata_t *s, struct st_mem_block *b)
{
    uintptr_t from = (uintptr_t)b->memory;

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
    if (b->memory) {
        register_block(s, b);
        b->next = s->mem_blocks;
        s->mem_blocks = b;
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
    int rc = STRATA_ERR_ARG;

    if (!s)
        return rc;
    lock(s);
    for (struct st_mem_block **at = &s->mem_blocks; *at; at = &(*at)->next) {
        struct st_mem_block *b = *at;
        if (b->memory != memory)
            continue;
        *at = b->next;
        free_block(s, b);
        rc = STRATA_OK;
        break;
    }
    unlock(s);
    return rc;
}

void st_mem_free_all(strata_t *s)
{
    while (s->mem_blocks) {
        struct st_mem_block *b = s->mem_blocks;
        s->mem_blocks = b->next;
        free_block(s, b);
    }
}
