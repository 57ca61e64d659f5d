/* Memory for users, registered with every device in use before it is sent for the first time. A device is in use from
 * its first endpoint on: it may be there for peers on other machines, of which a job has none. */
#define _GNU_SOURCE 1
#include <search.h>
#include <stdlib.h>

#include <strata/host.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>
#include "framework/base/context.h"
#include "framework/mpool/mpool_select.h"

/* What was allocated at once, and its registrations by module. The context has them in a tree by address: a program may
 * have very many, and give them back in any order. */
struct st_mem_block {
    void *memory;
    struct st_mem_block *next; /* of the spare ones */
    bool may_spare;            /* whoever has it next need not find zeros */
    size_t got, n_regs;
    struct st_btl_reg reg[]; /* one for each of the context's modules; handle NULL: none */
};

/* Modules from this one on have no bit in mem.used, and count as used. */
#define MEM_BITS 64u

static bool mem_is_used(const strata_t *s, size_t module)
{
    return module >= MEM_BITS || (s->mem.used >> module & 1);
}

/* A registration that cannot be had is no failure: it is tried again when the memory is sent. False: one is missing. */
static bool mem_register_block(strata_t *s, struct st_mem_block *b)
{
    bool all = true;

    for (size_t i = 0; i < b->n_regs; i++) {
        struct st_btl *btl = s->btls[i];
        if (!(btl->caps & ST_BTL_NEEDS_REG) || b->reg[i].handle || !mem_is_used(s, i))
            continue;
        if (btl->rdma->reg(btl, b->memory, b->got, ST_BTL_ANY_USE, &b->reg[i]) != STRATA_OK)
            b->reg[i].handle = NULL;
        all = all && b->reg[i].handle;
    }
    return all;
}

static int mem_by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct st_mem_block *)a)->memory,
              y = (uintptr_t)((const struct st_mem_block *)b)->memory;

    return (x > y) - (x < y);
}

/* The block at `memory`, or NULL. */
static struct st_mem_block *mem_find(strata_t *s, void *memory)
{
    const struct st_mem_block key = {.memory = memory};
    void **node = tfind(&key, &s->mem_blocks, mem_by_address);

    return node ? *node : NULL;
}

/* The action of twalk_r: registers one block. */
static void mem_register_node(const void *node, VISIT visit, void *context)
{
    if (visit == postorder || visit == leaf)
        (void)mem_register_block(context, *(struct st_mem_block *const *)node);
}

void st_mem_module_used(strata_t *s, const struct st_btl *btl)
{
    for (size_t i = 0; i < s->n_btls; i++) {
        if (s->btls[i] != btl || mem_is_used(s, i))
            continue;
        s->mem.used |= UINT64_C(1) << i;
        if (btl->caps & ST_BTL_NEEDS_REG)
            twalk_r(s->mem_blocks, mem_register_node, s);
    }
}

static void mem_free_block(strata_t *s, struct st_mem_block *b, bool keep)
{
    uintptr_t from = (uintptr_t)b->memory;

    for (size_t i = 0; i < b->n_regs; i++)
        if (b->reg[i].handle)
            s->btls[i]->rdma->dereg(s->btls[i], &b->reg[i]);
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

/* ---- blocks that were given back and stay registered, for who allocates again ---- */

static void mem_drop_spares(strata_t *s, size_t until)
{
    while (s->mem.spare && s->mem.spare_bytes > until) { /* the one that was given back first is the last */
        struct st_mem_block **at = &s->mem.spare, *b;
        while ((*at)->next)
            at = &(*at)->next;
        b = *at;
        *at = NULL;
        s->mem.spare_bytes -= b->got;
        mem_free_block(s, b, false);
    }
}

size_t st_mem_release_spare(strata_t *s)
{
    size_t bytes = s->mem.spare_bytes;

    mem_drop_spares(s, 0);
    return bytes;
}

/* The smallest that is large enough, and not too large. */
static struct st_mem_block *mem_take_spare(strata_t *s, size_t len)
{
    struct st_mem_block **best = NULL, *b;

    for (struct st_mem_block **at = &s->mem.spare; *at; at = &(*at)->next)
        if ((*at)->got >= len && (*at)->got / 2 <= len && (!best || (*at)->got < (*best)->got))
            best = at;
    if (!best)
        return NULL;
    b = *best;
    *best = b->next;
    s->mem.spare_bytes -= b->got;
    return b;
}

static void mem_give_back(strata_t *s, struct st_mem_block *b)
{
    size_t most = s->base->mem_spare;

    if (!b->may_spare || b->got > most) {
        mem_free_block(s, b, false);
        return;
    }
    mem_drop_spares(s, most - b->got);
    b->next = s->mem.spare;
    s->mem.spare = b;
    s->mem.spare_bytes += b->got;
}

static struct st_mem_block *mem_make_block(strata_t *s, size_t len)
{
    struct st_mem_block *b = calloc(1, sizeof(*b) + s->n_btls * sizeof(b->reg[0]));

    if (!b)
        return NULL;
    b->n_regs = s->n_btls;
    b->memory = s->mpool->ops->alloc(s->mpool, len, &b->got);
    if (!b->memory) {
        free(b);
        return NULL;
    }
    if (s->rcache && s->rcache->ops->hold)
        s->rcache->ops->hold(s->rcache, (uintptr_t)b->memory, (uintptr_t)b->memory + b->got);
    if (!mem_register_block(s, b) && st_mem_release_spare(s)) /* what they have registered may be what is missing */
        (void)mem_register_block(s, b);
    return b;
}

static int mem_allocate(strata_t *s, size_t len, bool may_spare, void **memory)
{
    struct st_mem_block *b;
    int rc = STRATA_ERR_NOMEM;

    if (!s || !memory)
        return STRATA_ERR_ARG;
    if (!st_mpool(s))
        return STRATA_ERR_UNSUPPORTED;
    if (len == 0)
        len = 1;
    st_context_lock(s);
    b = may_spare ? mem_take_spare(s, len) : NULL;
    if (b)
        (void)mem_register_block(s, b); /* with modules that came into use meanwhile */
    else
        b = mem_make_block(s, len);
    if (!b && st_mem_release_spare(s))
        b = mem_make_block(s, len);
    if (b && tsearch(b, &s->mem_blocks, mem_by_address)) {
        b->may_spare = may_spare;
        s->mem.n++;
        s->mem.bytes += b->got;
        if (s->mem.bytes > s->mem.bytes_max)
            s->mem.bytes_max = s->mem.bytes;
        *memory = b->memory;
        rc = STRATA_OK;
    } else if (b) {
        mem_free_block(s, b, false);
    }
    st_context_unlock(s);
    return rc;
}

int strata_mem_alloc(strata_t *s, size_t len, void **memory)
{
    return mem_allocate(s, len, false, memory);
}

int strata_host_mem_alloc(strata_t *s, size_t len, void **memory)
{
    return mem_allocate(s, len, true, memory);
}

int strata_mem_free(strata_t *s, void *memory)
{
    if (!s)
        return STRATA_ERR_ARG;
    st_context_lock(s);
    struct st_mem_block *b = mem_find(s, memory);
    if (b) {
        tdelete(b, &s->mem_blocks, mem_by_address);
        s->mem.n--;
        s->mem.bytes -= b->got;
        mem_give_back(s, b);
    }
    st_context_unlock(s);
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
    mem_drop_spares(s, 0);
    while (s->mem_blocks) {
        struct st_mem_block *b = *(void **)s->mem_blocks; /* the root: nodes begin with what was put there */
        tdelete(b, &s->mem_blocks, mem_by_address);
        mem_free_block(s, b, s->keep_memory);
    }
}
