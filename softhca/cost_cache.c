/* The translation cache of a device, in each process: which pages it had last, so many of them; the one that was used
 * least recently goes. A page is one of a memory region, by its key, so that what is registered anew is cold again. */
#include "cost.h"

#include <sched.h>
#include <stdlib.h>

#define NOWHERE UINT32_MAX

struct entry {
    uint64_t page;
    uint32_t key;
    uint32_t newer, older; /* NOWHERE: the newest, the oldest */
    uint32_t next;         /* in its bucket */
};

static struct cache {
    _Atomic(uint32_t) lock;
    uint32_t used, newest, oldest;
    uint32_t n, mask; /* entries; buckets less one. n 0: there is no memory yet */
    struct entry *of;
    uint32_t *bucket; /* the first entry of each */
} caches[HCA_DEVICES];

/* For a few dozen instructions; a mutex would take as long again. */
static void lock(struct cache *c)
{
    while (atomic_exchange_explicit(&c->lock, 1, memory_order_acquire))
        sched_yield();
}

static void unlock(struct cache *c)
{
    atomic_store_explicit(&c->lock, 0, memory_order_release);
}

static void empty(struct cache *c)
{
    c->used = 0;
    c->newest = c->oldest = NOWHERE;
    for (uint32_t i = 0; c->n && i <= c->mask; i++)
        c->bucket[i] = NOWHERE;
}

/* False: no memory, and all is cold. */
static bool make(struct cache *c)
{
    const uint32_t n = hca_cost.cache, buckets = hca_pow2(2 * n);

    c->of = malloc(n * sizeof *c->of);
    c->bucket = malloc(buckets * sizeof *c->bucket);
    if (!c->of || !c->bucket) {
        free(c->of);
        free(c->bucket);
        return false;
    }
    c->n = n;
    c->mask = buckets - 1;
    empty(c);
    return true;
}

static uint32_t *bucket_of(struct cache *c, uint32_t key, uint64_t page)
{
    return &c->bucket[((page ^ (uint64_t)key << 20) * 0x9e3779b97f4a7c15u) >> 32 & c->mask];
}

/* Out of the list by age. */
static void take_out(struct cache *c, uint32_t i)
{
    const struct entry *e = &c->of[i];

    *(e->newer == NOWHERE ? &c->newest : &c->of[e->newer].older) = e->older;
    *(e->older == NOWHERE ? &c->oldest : &c->of[e->older].newer) = e->newer;
}

static void put_first(struct cache *c, uint32_t i)
{
    c->of[i].newer = NOWHERE;
    c->of[i].older = c->newest;
    *(c->newest == NOWHERE ? &c->oldest : &c->of[c->newest].newer) = i;
    c->newest = i;
}

static void forget(struct cache *c, uint32_t i)
{
    uint32_t *at = bucket_of(c, c->of[i].key, c->of[i].page);

    while (*at != i)
        at = &c->of[*at].next;
    *at = c->of[i].next;
}

static bool has(struct cache *c, uint32_t key, uint64_t page)
{
    uint32_t i = c->newest;

    /* What is sent again and again is found here. */
    if (i != NOWHERE && c->of[i].page == page && c->of[i].key == key)
        return true;
    for (i = *bucket_of(c, key, page); i != NOWHERE; i = c->of[i].next) {
        if (c->of[i].page != page || c->of[i].key != key)
            continue;
        take_out(c, i);
        put_first(c, i);
        return true;
    }
    return false;
}

static void bring_in(struct cache *c, uint32_t key, uint64_t page)
{
    uint32_t i = c->used, *first;

    if (i < c->n) {
        c->used++;
    } else {
        i = c->oldest;
        take_out(c, i);
        forget(c, i);
    }
    first = bucket_of(c, key, page);
    c->of[i] = (struct entry){.page = page, .key = key, .next = *first};
    *first = i;
    put_first(c, i);
}

void hca_cost_translate(struct hca_charge *charge, uint32_t device, const struct hca_sge *sge, uint32_t n)
{
    struct cache *c = &caches[device];

    lock(c);
    const bool there = c->n || make(c);
    for (uint32_t i = 0; i < n; i++) {
        const unsigned shift = hca_cost_page_shift(sge[i].lkey >> 8);
        const uint64_t first = sge[i].addr >> shift, last = (sge[i].addr + sge[i].length - 1) >> shift;
        for (uint64_t page = first; sge[i].length && page <= last; page++) {
            if (there && has(c, sge[i].lkey, page))
                continue;
            hca_charge_add(charge, HCA_COST_COLD, 1);
            if (there)
                bring_in(c, sge[i].lkey, page);
        }
    }
    unlock(c);
}

/* Another thread may have been in the middle of it. */
void hca_cost_cache_in_child(void)
{
    for (uint32_t i = 0; i < HCA_DEVICES; i++) {
        empty(&caches[i]);
        unlock(&caches[i]);
    }
}
