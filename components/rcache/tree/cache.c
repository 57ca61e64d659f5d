/* The cache: get, put and what makes entries leave. See cache.h for the lists that an entry can be in. */
#include "cache.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline struct cache *cache_of(struct st_rcache *cache)
{
    return (struct cache *)cache;
}

static inline bool live(const struct cache_entry *e)
{
    return e->range.at != NULL;
}

/* Acquire and release: what one has done the next one sees. */
static inline void enter(struct cache *t)
{
    while (__builtin_expect(atomic_exchange_explicit(&t->busy, true, memory_order_acquire), 0))
        sched_yield(); /* a fork: it undoes what is idle, and waits for nobody */
}

static inline void leave(struct cache *t)
{
    atomic_store_explicit(&t->busy, false, memory_order_release);
}

/* ---- entries leave ---------------------------------------------------------------------------------------------- */

/* Undoes a registration that is in no tree. */
static void drop(struct cache *t, struct cache_entry *e)
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

static void unmap(struct cache_entry *e)
{
    struct cache_client *own = e->range.base.client->own;
    tree_remove(&own->ranges, &e->range);
}

/* In use, and handed out to nobody else: its last put drops it. */
static void retire(struct cache_entry *e)
{
    struct cache_client *own = e->range.base.client->own;
    unmap(e);
    st_list_remove(&e->node);
    st_list_append(&own->dead, &e->node);
}

/* Its memory went away. */
static void kill_entry(struct cache *t, struct cache_entry *e)
{
    t->n.invalidations++;
    if (e->range.base.refs > 0) {
        retire(e);
        return;
    }
    unmap(e);
    drop(t, e);
}

static void kill_range(void *arg, uintptr_t from, uintptr_t to)
{
    struct cache *t = arg;
    for (struct st_node *n = t->clients.next; n != &t->clients; n = n->next) {
        struct cache_client *own = ST_CONTAINER(n, struct cache_client, node);
        struct tree_range *r;
        while ((r = tree_overlapping(&own->ranges, from, to)))
            kill_entry(t, (struct cache_entry *)r);
    }
    t->n.ranges++;
}

static __attribute__((noinline)) void apply_news(struct cache *t)
{
    if (mailbox_take(t->gone, kill_range, t)) {
        t->n.overflows++;
        kill_range(t, 0, UINTPTR_MAX);
        t->n.ranges--; /* it was not reported */
    }
}

/* Something is under way, or reports may have been missed. */
static __attribute__((noinline)) void settle(struct cache *t, uintptr_t from, uintptr_t to)
{
    struct st_memory_source *m = t->base.memory;
    if (m->settle && m->settle(m, from, to))
        return;
    t->n.overflows++;
    kill_range(t, 0, UINTPTR_MAX);
    t->n.ranges--; /* it was not reported */
}

/* [from, to) is going to be looked up. */
static inline void apply_before(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    /* The source first: what it still has to report comes into the mailbox. */
    if (cache->memory && __builtin_expect(!st_memory_steady(cache->memory), 0))
        settle(cache_of(cache), from, to);
    if (mailbox_any(cache_of(cache)->gone))
        apply_news(cache_of(cache));
}

static void apply(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    if (__builtin_expect(!mailbox_any(t->gone) && (!cache->memory || st_memory_steady(cache->memory)), 1))
        return;
    enter(t);
    apply_before(cache, 0, 0);
    leave(t);
}

/* The entry that was given back longest ago, or NULL. Those found in use on the way leave the list: the last put of
 * each appends it again. */
static struct cache_entry *oldest(struct cache *t)
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
static size_t evict(struct cache *t)
{
    struct cache_entry *e = oldest(t);
    if (!e)
        return 0;
    size_t bytes = e->range.base.to - e->range.base.from;
    unmap(e);
    drop(t, e);
    return bytes;
}

static bool over(const struct cache *t, uint64_t bytes, uint64_t entries)
{
    return t->n.bytes + bytes > t->max_bytes || t->n.entries + entries > t->max_entries;
}

/* Makes room below the caps for one more of so many bytes, as far as idle entries can give it. */
static void make_room(struct cache *t, uint64_t bytes, uint64_t entries)
{
    while (over(t, bytes, entries) && evict(t))
        t->n.evictions++;
}

static size_t flush(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    size_t n = 0;
    enter(t);
    apply_before(cache, 0, 0);
    while (evict(t))
        n++;
    leave(t);
    return n;
}

/* The fork has been reported: what is in use goes with its last put. */
static void before_fork(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    if (atomic_exchange_explicit(&t->busy, true, memory_order_acquire))
        return;
    while (evict(t))
        t->n.invalidations++;
    leave(t);
}

/* ---- get and put ------------------------------------------------------------------------------------------------ */

/* Registers; while the device is out of memory, gives back at least as much as is asked for and tries again. */
static int make(struct cache *t, struct st_rcache_client *client, uintptr_t from, uintptr_t to, uint32_t *access,
                void **handle)
{
    for (;;) {
        int rc = client->make(client, (void *)from, to - from, access, handle);
        if (rc != STRATA_ERR_NOMEM)
            return rc;
        size_t bytes, sum = 0;
        while (sum < to - from && (bytes = evict(t))) {
            sum += bytes;
            t->n.evictions++;
        }
        if (sum == 0)
            return rc;
    }
}

static __attribute__((noinline)) int get_miss(struct cache *t, struct st_rcache_client *client, uintptr_t from,
                                              uintptr_t to, uint32_t access, struct st_rcache_entry **out)
{
    struct cache_client *own = client->own;
    void *handle;
    struct st_memory_source *m = t->base.memory;
    t->n.misses++;
    make_room(t, to - from, 1);
    /* Before it is registered: what happens to the memory after that is told. */
    bool watched = !m || !m->cover || m->cover(m, from, to);
    struct cache_entry *e = st_slab_get(&t->entries);
    if (!e)
        return STRATA_ERR_NOMEM;
    int rc = make(t, client, from, to, &access, &handle);
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
        retire(e);
    return STRATA_OK;
unmake:
    client->unmake(client, handle);
free_entry:
    st_slab_put(&t->entries, e);
    return rc;
}

static inline bool serves(const struct cache_entry *e, const struct st_rcache_client *client, uintptr_t from,
                          uintptr_t to, uint32_t access)
{
    const struct st_rcache_entry *b = &e->range.base;
    return live(e) && b->client == client && b->from <= from && b->to >= to && (b->access & access) == access;
}

static int get(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len, uint32_t access,
               struct st_rcache_entry **out)
{
    struct cache *t = cache_of(cache);
    struct cache_client *own = client->own;
    uintptr_t from, to;
    int rc = st_rcache_round(cache, base, len, &from, &to);
    if (rc != STRATA_OK)
        return rc;
    enter(t);
    apply_before(cache, from, to);
    struct cache_entry **guess = cache_memo_at(&t->memo, client, from), *e = *guess;
    if (!e || !serves(e, client, from, to, access)) {
        e = (struct cache_entry *)tree_covering(&own->ranges, from, to, access);
        if (!e) {
            rc = get_miss(t, client, from, to, access, out);
            leave(t);
            return rc;
        }
        *guess = e;
    }
    e->range.base.refs++;
    t->n.hits++;
    leave(t);
    *out = &e->range.base;
    return STRATA_OK;
}

static inline void give_back(struct cache *t, struct cache_entry *e)
{
    if (--e->range.base.refs)
        return;
    if (!live(e)) {
        drop(t, e);
        return;
    }
    if (t->idle.prev != &e->node) { /* else it is the last one used already */
        st_list_remove(&e->node);
        st_list_append(&t->idle, &e->node);
    }
    if (__builtin_expect(over(t, 0, 0), 0))
        make_room(t, 0, 0);
}

static void put(struct st_rcache *cache, struct st_rcache_entry *entry)
{
    struct cache *t = cache_of(cache);
    enter(t);
    apply_before(cache, 0, 0);
    give_back(t, (struct cache_entry *)entry);
    leave(t);
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static int attach(struct st_rcache *cache, struct st_rcache_client *client)
{
    struct cache_client *own = calloc(1, sizeof(*own));
    if (!own)
        return STRATA_ERR_NOMEM;
    own->ranges.nodes = &cache_of(cache)->nodes;
    st_list_init(&own->dead);
    enter(cache_of(cache));
    st_list_append(&cache_of(cache)->clients, &own->node);
    leave(cache_of(cache));
    client->own = own;
    return STRATA_OK;
}

static void detach(struct st_rcache *cache, struct st_rcache_client *client)
{
    struct cache *t = cache_of(cache);
    struct cache_client *own = client->own;
    struct tree_range *r;
    struct st_node *n;
    enter(t);
    while ((r = tree_overlapping(&own->ranges, 0, UINTPTR_MAX))) {
        unmap((struct cache_entry *)r);
        drop(t, (struct cache_entry *)r);
    }
    while ((n = st_list_first(&own->dead)))
        drop(t, ST_CONTAINER(n, struct cache_entry, node));
    st_list_remove(&own->node);
    leave(t);
    free(own);
    client->own = NULL;
}

static void invalidate(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    mailbox_post(cache_of(cache)->gone, from, to);
}

static void counters(struct st_rcache *cache, struct st_rcache_counters *out)
{
    enter(cache_of(cache));
    *out = cache_of(cache)->n;
    leave(cache_of(cache));
}

static void mem_report(struct st_rcache *cache, st_mem_line_fn line, void *arg)
{
    const struct cache *t = cache_of(cache);
    strata_mem_line_t l = {.component = "rcache_tree", .category = "other", .bytes = sizeof(*t) + sizeof(*t->gone)};
    l.bytes += st_slab_bytes(&t->entries) + st_slab_bytes(&t->nodes);
    l.bytes += sizeof(struct cache_entry *) << t->memo.bits;
    for (struct st_node *n = t->clients.next; n != &t->clients; n = n->next)
        l.bytes += sizeof(struct cache_client);
    line(arg, &l);
}

static void close_tree(struct st_rcache *cache)
{
    struct cache *t = cache_of(cache);
    st_slab_destroy(&t->entries);
    st_slab_destroy(&t->nodes);
    free(t->memo.slot);
    free(t->gone);
    free(t);
}

static const struct st_rcache_ops ops = {
    .attach = attach,
    .detach = detach,
    .get = get,
    .put = put,
    .invalidate = invalidate,
    .apply = apply,
    .flush = flush,
    .before_fork = before_fork,
    .counters = counters,
    .mem_report = mem_report,
    .close = close_tree,
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
    t->base = (struct st_rcache){.ops = &ops, .context = s, .page = (uintptr_t)sysconf(_SC_PAGESIZE)};
    *out = &t->base;
    return STRATA_OK;
}
