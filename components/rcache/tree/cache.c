/* The cache: get, put and what makes entries leave. See cache.h for the lists that an entry can be in. */
#include "cache.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/process_memory.h>

static inline struct cache *cache_of(struct st_rcache *cache)
{
    return (struct cache *)cache;
}

static inline bool cache_live(const struct cache_entry *e)
{
    return e->range.at != NULL;
}

/* Acquire and release: what one has done the next one sees. */
static inline void cache_enter(struct cache *t)
{
    while (ST_UNLIKELY(atomic_exchange_explicit(&t->busy, true, memory_order_acquire)))
        sched_yield(); /* a fork: it undoes what is idle, and waits for nobody */
}

static inline void cache_leave(struct cache *t)
{
    atomic_store_explicit(&t->busy, false, memory_order_release);
}

/* ---- entries leave ---------------------------------------------------------------------------------------------- */

/* Undoes a registration that is in no tree. */
static void cache_drop(struct cache *t, struct cache_entry *e)
{
    struct st_rcache_entry *b = &e->range.base;
    st_list_remove(&e->node);
    b->client->unmake(b->client, b->handle);
    t->n.entries--;
    t->n.bytes -= b->to - b->from;
    st_slab_put(&t->entries, e);
    if (t->n.entries == 0)
        mailbox_close(t->gone);
}

static void cache_unmap(struct cache_entry *e)
{
    struct cache_client *own = e->range.base.client->own;
    tree_remove(&own->ranges, &e->range);
}

/* In use, and handed out to nobody else: its last put drops it. */
static void cache_retire(struct cache_entry *e)
{
    struct cache_client *own = e->range.base.client->own;
    cache_unmap(e);
    st_list_remove(&e->node);
    st_list_append(&own->dead, &e->node);
}

/* Its memory went away. */
static void cache_kill_entry(struct cache *t, struct cache_entry *e)
{
    t->n.invalidations++;
    if (e->range.base.refs > 0) {
        cache_retire(e);
        return;
    }
    cache_unmap(e);
    cache_drop(t, e);
}

static void cache_kill_range(void *arg, uintptr_t from, uintptr_t to)
{
    struct cache *t = arg;
    for (struct st_node *n = t->clients.next; n != &t->clients; n = n->next) {
        struct cache_client *own = ST_CONTAINER(n, struct cache_client, node);
        struct tree_range *r;
        while ((r = tree_overlapping(&own->ranges, from, to)))
            cache_kill_entry(t, (struct cache_entry *)r);
    }
    t->n.ranges++;
}

static __attribute__((noinline)) void cache_apply_news(struct cache *t)
{
    if (mailbox_take(t->gone, cache_kill_range, t)) {
        t->n.overflows++;
        cache_kill_range(t, 0, UINTPTR_MAX);
        t->n.ranges--; /* it was not reported */
    }
}

/* Something is under way, or reports may have been missed. */
static __attribute__((noinline)) void cache_settle(struct cache *t, uintptr_t from, uintptr_t to)
{
    struct st_memory_source *m = t->base.memory;
    if (m->settle && m->settle(m, from, to))
        return;
    t->n.overflows++;
    cache_kill_range(t, 0, UINTPTR_MAX);
    t->n.ranges--; /* it was not reported */
}

/* [from, to) is going to be looked up. */
static inline void cache_apply_before(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    /* The source first: what it still has to report comes into the mailbox. */
    if (cache->memory && ST_UNLIKELY(!st_memory_steady(cache->memory)))
        cache_settle(cache_of(cache), from, to);
    if (mailbox_any(cache_of(cache)->gone))
        cache_apply_news(cache_of(cache));
}

static void cache_apply(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    if (ST_LIKELY(!mailbox_any(t->gone) && (!cache->memory || st_memory_steady(cache->memory))))
        return;
    cache_enter(t);
    cache_apply_before(cache, 0, 0);
    cache_leave(t);
}

/* The entry that was given back longest ago, or NULL. Those found in use on the way leave the list: the last put of
 * each appends it again. */
static struct cache_entry *cache_oldest(struct cache *t)
{
    struct st_node *n;
    while ((n = st_list_first(&t->idle))) {
        struct cache_entry *e = ST_CONTAINER(n, struct cache_entry, node);
        if (e->range.base.refs == 0)
            return e;
        st_list_remove(n);
    }
    return NULL;
}

/* Undoes the oldest idle registration: how many bytes that gave back, or 0. */
static size_t cache_evict(struct cache *t)
{
    struct cache_entry *e = cache_oldest(t);
    if (!e)
        return 0;
    size_t bytes = e->range.base.to - e->range.base.from;
    cache_unmap(e);
    cache_drop(t, e);
    return bytes;
}

static bool cache_over(const struct cache *t, uint64_t bytes, uint64_t entries)
{
    return t->n.bytes + bytes > t->max_bytes || t->n.entries + entries > t->max_entries;
}

/* Makes room below the caps for one more of so many bytes, as far as idle entries can give it. */
static void cache_make_room(struct cache *t, uint64_t bytes, uint64_t entries)
{
    while (cache_over(t, bytes, entries) && cache_evict(t))
        t->n.evictions++;
}

static size_t cache_flush(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    size_t n = 0;
    cache_enter(t);
    cache_apply_before(cache, 0, 0);
    while (cache_evict(t))
        n++;
    cache_leave(t);
    return n;
}

/* The fork has been reported: what is in use goes with its last put. */
static void cache_before_fork(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    if (atomic_exchange_explicit(&t->busy, true, memory_order_acquire))
        return;
    while (cache_evict(t))
        t->n.invalidations++;
    cache_leave(t);
}

/* ---- get and put ------------------------------------------------------------------------------------------------ */

/* Registers; while the device is out of memory, gives back at least as much as is asked for and tries again. */
static int cache_register(struct cache *t, struct st_rcache_client *client, uintptr_t from, uintptr_t to,
                          uint32_t *access, void **handle)
{
    for (;;) {
        int rc = client->make(client, (void *)from, to - from, access, handle);
        if (rc != STRATA_ERR_NOMEM)
            return rc;
        size_t bytes, sum = 0;
        while (sum < to - from && (bytes = cache_evict(t))) {
            sum += bytes;
            t->n.evictions++;
        }
        if (sum == 0)
            return rc;
    }
}

static __attribute__((noinline)) int cache_get_miss(struct cache *t, struct st_rcache_client *client, uintptr_t from,
                                                    uintptr_t to, uint32_t access, struct st_rcache_entry **out)
{
    struct cache_client *own = client->own;
    void *handle;
    struct st_memory_source *m = t->base.memory;
    t->n.misses++;
    cache_make_room(t, to - from, 1);
    /* Before it is registered: what happens to the memory after that is told. */
    bool watched = !m || !m->cover || m->cover(m, from, to);
    struct cache_entry *e = st_slab_get(&t->entries);
    if (!e)
        return STRATA_ERR_NOMEM;
    int rc = cache_register(t, client, from, to, &access, &handle);
    if (rc != STRATA_OK)
        goto free_entry;
    e->range = (struct tree_range){.base = {from, to, handle, client, access, 1}, .at = NULL};
    if ((rc = tree_add(&own->ranges, &e->range)) != STRATA_OK)
        goto unmake;
    mailbox_widen(t->gone, from, to);
    st_list_init(&e->node);
    t->n.entries++;
    t->n.bytes += to - from;
    if (t->n.bytes > t->n.bytes_max)
        t->n.bytes_max = t->n.bytes;
    cache_memo_grow(&t->memo, t->n.entries);
    *cache_memo_at(&t->memo, client, from) = e;
    *out = &e->range.base;
    if (!watched) /* nobody would tell: it serves this once */
        cache_retire(e);
    return STRATA_OK;
unmake:
    client->unmake(client, handle);
free_entry:
    st_slab_put(&t->entries, e);
    return rc;
}

static inline bool cache_serves(const struct cache_entry *e, const struct st_rcache_client *client, uintptr_t from,
                                uintptr_t to, uint32_t access)
{
    const struct st_rcache_entry *b = &e->range.base;
    return cache_live(e) && b->client == client && b->from <= from && b->to >= to && (b->access & access) == access;
}

static int cache_get(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len,
                     uint32_t access, struct st_rcache_entry **out)
{
    struct cache *t = cache_of(cache);
    struct cache_client *own = client->own;
    uintptr_t from, to;
    int rc = st_rcache_round(cache, base, len, &from, &to);
    if (rc != STRATA_OK)
        return rc;
    cache_enter(t);
    cache_apply_before(cache, from, to);
    struct cache_entry **guess = cache_memo_at(&t->memo, client, from), *e = *guess;
    if (!e || !cache_serves(e, client, from, to, access)) {
        e = (struct cache_entry *)tree_covering(&own->ranges, from, to, access);
        if (!e) {
            rc = cache_get_miss(t, client, from, to, access, out);
            cache_leave(t);
            return rc;
        }
        *guess = e;
    }
    e->range.base.refs++;
    t->n.hits++;
    cache_leave(t);
    *out = &e->range.base;
    return STRATA_OK;
}

static inline void cache_give_back(struct cache *t, struct cache_entry *e)
{
    if (--e->range.base.refs)
        return;
    if (!cache_live(e)) {
        cache_drop(t, e);
        return;
    }
    if (t->idle.prev != &e->node) { /* else it is the last one used already */
        st_list_remove(&e->node);
        st_list_append(&t->idle, &e->node);
    }
    if (ST_UNLIKELY(cache_over(t, 0, 0)))
        cache_make_room(t, 0, 0);
}

static void cache_put(struct st_rcache *cache, struct st_rcache_entry *entry)
{
    struct cache *t = cache_of(cache);
    cache_enter(t);
    cache_apply_before(cache, 0, 0);
    cache_give_back(t, (struct cache_entry *)entry);
    cache_leave(t);
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static int cache_attach(struct st_rcache *cache, struct st_rcache_client *client)
{
    struct cache_client *own = calloc(1, sizeof(*own));
    if (!own)
        return STRATA_ERR_NOMEM;
    own->ranges.nodes = &cache_of(cache)->nodes;
    st_list_init(&own->dead);
    cache_enter(cache_of(cache));
    st_list_append(&cache_of(cache)->clients, &own->node);
    cache_leave(cache_of(cache));
    client->own = own;
    return STRATA_OK;
}

static void cache_detach(struct st_rcache *cache, struct st_rcache_client *client)
{
    struct cache *t = cache_of(cache);
    struct cache_client *own = client->own;
    struct tree_range *r;
    struct st_node *n;
    cache_enter(t);
    while ((r = tree_overlapping(&own->ranges, 0, UINTPTR_MAX))) {
        cache_unmap((struct cache_entry *)r);
        cache_drop(t, (struct cache_entry *)r);
    }
    while ((n = st_list_first(&own->dead)))
        cache_drop(t, ST_CONTAINER(n, struct cache_entry, node));
    st_list_remove(&own->node);
    cache_leave(t);
    free(own);
    client->own = NULL;
}

static void cache_invalidate(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    mailbox_post(cache_of(cache)->gone, from, to);
}

static void cache_counters(struct st_rcache *cache, struct st_rcache_counters *out)
{
    cache_enter(cache_of(cache));
    *out = cache_of(cache)->n;
    cache_leave(cache_of(cache));
}

static void cache_mem_report(struct st_rcache *cache, st_mem_line_fn line, void *arg)
{
    const struct cache *t = cache_of(cache);
    strata_mem_line_t l = {.component = "rcache_tree", .category = "other", .bytes = sizeof(*t) + sizeof(*t->gone)};
    l.bytes += st_slab_bytes(&t->entries) + st_slab_bytes(&t->nodes);
    l.bytes += sizeof(struct cache_entry *) << t->memo.bits;
    for (struct st_node *n = t->clients.next; n != &t->clients; n = n->next)
        l.bytes += sizeof(struct cache_client);
    line(arg, &l);
}

static void cache_close(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    st_slab_destroy(&t->entries);
    st_slab_destroy(&t->nodes);
    free(t->memo.slot);
    free(t->gone);
    free(t);
}

static const struct st_rcache_ops ops = {
    .attach = cache_attach,
    .detach = cache_detach,
    .get = cache_get,
    .put = cache_put,
    .invalidate = cache_invalidate,
    .apply = cache_apply,
    .flush = cache_flush,
    .before_fork = cache_before_fork,
    .counters = cache_counters,
    .mem_report = cache_mem_report,
    .close = cache_close,
};

int cache_make(strata_t *s, const struct cache_config *config, struct st_rcache **out)
{
    struct cache *t = calloc(1, sizeof(*t));
    if (!t)
        return STRATA_ERR_NOMEM;
    t->gone = aligned_alloc(64, sizeof(*t->gone));
    if (!t->gone || st_slab_init(&t->entries, sizeof(struct cache_entry), 64, 64, 0) != STRATA_OK ||
        st_slab_init(&t->nodes, sizeof(struct tree_node), 64, 16, 0) != STRATA_OK ||
        cache_memo_init(&t->memo) != STRATA_OK) {
        free(t->gone);
        free(t);
        return STRATA_ERR_NOMEM;
    }
    mailbox_init(t->gone);
    st_list_init(&t->clients);
    st_list_init(&t->idle);
    t->max_bytes = cache_limit(config);
    t->max_entries = (uint64_t)config->max_entries;
    t->base = (struct st_rcache){.ops = &ops, .context = s, .page = st_page_size()};
    *out = &t->base;
    return STRATA_OK;
}
