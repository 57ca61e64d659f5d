/* Registered memory: a table of what peers may read and write, and keys that name its entries. */
#include <stdlib.h>
#include <string.h>
#include "rdma.h"

#define REGS_MOST (1u << 24)

/* Never the same number twice in 2^64 (splitmix64). Only members of the job see keys; one of them could compute the
 * next number. */
static uint64_t reg_secret(struct tcp_module *m)
{
    uint64_t z;

    do {
        z = m->secrets += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
    } while (z == 0);
    return z;
}

static int reg_grow(struct tcp_module *m)
{
    uint32_t n = m->n_regs ? 2 * m->n_regs : 64;
    struct tcp_registered *regs = n <= REGS_MOST ? realloc(m->regs, n * sizeof *regs) : NULL;

    if (!regs)
        return STRATA_ERR_NOMEM;
    for (uint32_t i = m->n_regs; i < n; i++)
        regs[i] = (struct tcp_registered){.next_free = i + 1};
    m->regs = regs;
    m->free_reg = m->n_regs;
    m->n_regs = n;
    return STRATA_OK;
}

int tcp_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out)
{
    struct tcp_module *m = tcp_of(btl);
    struct tcp_key key = {.index = m->free_reg};
    struct tcp_registered *entry;

    if (!base || (uintptr_t)base + len < (uintptr_t)base)
        return STRATA_ERR_ARG;
    if (m->free_reg == m->n_regs && reg_grow(m) != STRATA_OK)
        return STRATA_ERR_NOMEM;
    entry = &m->regs[key.index];
    m->free_reg = entry->next_free;
    key.secret = reg_secret(m);
    *entry = (struct tcp_registered){
        .base = base, .len = len, .secret = key.secret, .writable = use == ST_BTL_ANY_USE, .next_free = 0};
    *out = (struct st_btl_reg){.handle = (void *)((uintptr_t)key.index + 1)};
    memcpy(out->key, &key, sizeof key);
    return STRATA_OK;
}

void tcp_dereg(struct st_btl *btl, struct st_btl_reg *reg)
{
    struct tcp_module *m = tcp_of(btl);
    uintptr_t handle = (uintptr_t)reg->handle;
    uint32_t index = (uint32_t)(handle - 1);

    if (handle == 0 || index >= m->n_regs || !m->regs[index].base)
        return;
    m->regs[index] = (struct tcp_registered){.next_free = m->free_reg};
    m->free_reg = index;
    reg->handle = NULL;
}

char *tcp_reg_find(const struct tcp_module *m, const struct tcp_key *key, uint64_t address, uint64_t len, bool write)
{
    const struct tcp_registered *entry = key->index < m->n_regs ? &m->regs[key->index] : NULL;
    uint64_t offset;

    if (!entry || !entry->base || entry->secret != key->secret || (write && !entry->writable))
        return NULL;
    offset = address - (uint64_t)(uintptr_t)entry->base;
    if (offset > entry->len || len > entry->len - offset)
        return NULL;
    return entry->base + offset;
}
