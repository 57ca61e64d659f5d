/* The table of bins: look-up, growth, and the purge of empty bins when it would grow. */
#include <stdlib.h>
#include <strata/sdk/hash.h>
#include "match.h"

#define FIRST_SLOTS   16u
#define BINS_PER_SLAB 32u
#define NO_KEY        0xfffffffefffffffeull /* source -2: no rank, no wildcard */

int ob1_match_init(struct ob1_match *m)
{
    int rc;

    *m = (struct ob1_match){0};
    rc = st_slab_init(&m->bins, sizeof(struct ob1_bin), 8, BINS_PER_SLAB, 0);
    if (rc != STRATA_OK)
        return rc;
    m->none.key = NO_KEY;
    st_list_init(&m->none.posted);
    st_list_init(&m->none.unexpected);
    st_list_init(&m->arrived);
    st_list_init(&m->hidden);
    m->last = &m->none;
    return STRATA_OK;
}

void ob1_match_destroy(struct ob1_match *m)
{
    free(m->table);
    st_slab_destroy(&m->bins);
    m->table = NULL;
    m->last = &m->none;
    m->n_bins = 0;
}

size_t ob1_match_bytes(const struct ob1_match *m)
{
    return st_slab_bytes(&m->bins) + (m->table ? ((size_t)m->mask + 1) * sizeof(struct ob1_bin *) : 0);
}

/* Source is folded into tag: neighbouring ranks and tags land in different slots. */
ST_INLINE uint32_t ob1_match_slot(uint64_t key, uint32_t mask)
{
    uint64_t h = st_hash(key ^ (key >> 29));

    return (uint32_t)(h >> 32) & mask;
}

static bool ob1_match_bin_empty(const struct ob1_bin *b)
{
    return b->posted.next == &b->posted && b->unexpected.next == &b->unexpected;
}

/* Gives empty bins back, then doubles the table if it is still more than half full. */
static ST_COLD int ob1_match_grow(struct ob1_match *m)
{
    uint32_t slots = m->table ? m->mask + 1 : 0, keep = 0, want;
    struct ob1_bin **table;

    m->last = &m->none;
    for (uint32_t i = 0; i < slots; i++) {
        for (struct ob1_bin **at = &m->table[i], *b; (b = *at) != NULL;) {
            if (ob1_match_bin_empty(b)) {
                *at = b->next;
                st_slab_put(&m->bins, b);
            } else {
                at = &b->next;
                keep++;
            }
        }
    }
    m->n_bins = keep;
    want = slots == 0 ? FIRST_SLOTS : keep > slots / 2 && slots < (1u << 30) ? slots * 2 : slots;
    if (want == slots)
        return STRATA_OK;
    table = calloc(want, sizeof(struct ob1_bin *));
    if (!table)
        return slots ? STRATA_OK : STRATA_ERR_NOMEM; /* longer chains, no failure */
    for (uint32_t i = 0; i < slots; i++) {
        for (struct ob1_bin *b = m->table[i], *next; b; b = next) {
            uint32_t at = ob1_match_slot(b->key, want - 1);
            next = b->next;
            b->next = table[at];
            table[at] = b;
        }
    }
    free(m->table);
    m->table = table;
    m->mask = want - 1;
    return STRATA_OK;
}

/* A wildcard's bin is not what the next message will want. */
ST_INLINE struct ob1_bin *ob1_match_used(struct ob1_match *m, struct ob1_bin *b)
{
    if (ob1_key_exact(b->key))
        m->last = b;
    return b;
}

struct ob1_bin *ob1_match_lookup(struct ob1_match *m, uint64_t key)
{
    if (ST_UNLIKELY(!m->table))
        return NULL;
    for (struct ob1_bin *b = m->table[ob1_match_slot(key, m->mask)]; b; b = b->next) {
        if (b->key == key)
            return ob1_match_used(m, b);
    }
    return NULL;
}

struct ob1_bin *ob1_match_bin_slow(struct ob1_match *m, uint64_t key)
{
    struct ob1_bin *b = ob1_match_lookup(m, key);
    uint32_t at;

    if (b)
        return b;
    if ((!m->table || m->n_bins > m->mask) && ob1_match_grow(m) != STRATA_OK)
        return NULL;
    b = st_slab_get(&m->bins);
    if (!b)
        return NULL;
    b->key = key;
    st_list_init(&b->posted);
    st_list_init(&b->unexpected);
    at = ob1_match_slot(key, m->mask);
    b->next = m->table[at];
    m->table[at] = b;
    m->n_bins++;
    return ob1_match_used(m, b);
}
