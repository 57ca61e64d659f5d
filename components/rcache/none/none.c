/* rcache "none": every get registers, every put undoes it. Nothing is kept, so nothing can be stale, and nobody need
 * tell when memory goes away. */
#include <stdlib.h>
#include <strata/sdk/list.h>
#include <strata/sdk/process_memory.h>
#include <strata/sdk/rcache.h>
#include <strata/sdk/slab.h>

struct none {
    struct st_rcache base;
    struct st_slab entries;
    struct st_node held; /* struct held */
    struct st_rcache_counters n;
};

/* Memory that stays until it is taken out of here. */
struct held {
    struct st_node node;
    uintptr_t from, to;
};

struct entry {
    struct st_rcache_entry base;
    struct st_node node; /* in the client's list */
};

static struct none *none_of(struct st_rcache *cache)
{
    return (struct none *)cache;
}

static void none_drop(struct none *c, struct entry *e)
{
    st_list_remove(&e->node);
    e->base.client->unmake(e->base.client, e->base.handle);
    c->n.entries--;
    c->n.bytes -= e->base.to - e->base.from;
    st_slab_put(&c->entries, e);
}

static int none_attach(struct st_rcache *cache, struct st_rcache_client *client)
{
    struct st_node *list = malloc(sizeof(*list));

    (void)cache;
    if (!list)
        return STRATA_ERR_NOMEM;
    st_list_init(list);
    client->own = list;
    return STRATA_OK;
}

static void none_detach(struct st_rcache *cache, struct st_rcache_client *client)
{
    struct st_node *list = client->own, *n;

    while ((n = st_list_first(list)))
        none_drop(none_of(cache), ST_CONTAINER(n, struct entry, node));
    free(list);
    client->own = NULL;
}

static struct held *none_held_around(struct none *c, uintptr_t from, uintptr_t to)
{
    for (struct st_node *n = c->held.next; n != &c->held; n = n->next) {
        struct held *h = ST_CONTAINER(n, struct held, node);
        if (h->from <= from && to <= h->to)
            return h;
    }
    return NULL;
}

static void none_hold(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    struct held *h = malloc(sizeof(*h));

    if (!h) /* then its registrations are not shared */
        return;
    *h = (struct held){.from = from, .to = to};
    st_list_append(&none_of(cache)->held, &h->node);
}

static void none_unhold(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    struct held *h = none_held_around(none_of(cache), from, to);

    if (!h || h->from != from || h->to != to)
        return;
    st_list_remove(&h->node);
    free(h);
}

/* A registration in use that serves, of memory that stays. */
static struct entry *none_shared(struct none *c, struct st_rcache_client *client, uintptr_t from, uintptr_t to,
                                 uint32_t access)
{
    struct st_node *list = client->own;

    if (!none_held_around(c, from, to))
        return NULL;
    for (struct st_node *n = list->next; n != list; n = n->next) {
        struct entry *e = ST_CONTAINER(n, struct entry, node);
        if (e->base.from <= from && to <= e->base.to && (e->base.access & access) == access)
            return e;
    }
    return NULL;
}

static int none_get(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len,
                    uint32_t access, struct st_rcache_entry **out)
{
    struct none *c = none_of(cache);
    uintptr_t from, to;
    void *handle;
    int rc = st_rcache_round(cache, base, len, &from, &to);

    if (rc != STRATA_OK)
        return rc;
    struct entry *e = st_list_empty(&c->held) ? NULL : none_shared(c, client, from, to, access);
    if (e) {
        c->n.hits++;
        e->base.refs++;
        *out = &e->base;
        return STRATA_OK;
    }
    e = st_slab_get(&c->entries);
    if (!e)
        return STRATA_ERR_NOMEM;
    c->n.misses++;
    rc = client->make(client, (void *)from, to - from, &access, &handle);
    if (rc != STRATA_OK) {
        st_slab_put(&c->entries, e);
        return rc;
    }
    e->base = (struct st_rcache_entry){from, to, handle, client, access, 1};
    st_list_init(&e->node);
    st_list_append(client->own, &e->node);
    c->n.entries++;
    c->n.bytes += to - from;
    if (c->n.bytes > c->n.bytes_max)
        c->n.bytes_max = c->n.bytes;
    *out = &e->base;
    return STRATA_OK;
}

static void none_put(struct st_rcache *cache, struct st_rcache_entry *entry)
{
    if (--entry->refs == 0)
        none_drop(none_of(cache), (struct entry *)entry);
}

/* Whatever is registered is in use, and is handed out to nobody else. */
static void none_invalidate(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    (void)cache, (void)from, (void)to;
}

static void none_apply(struct st_rcache *cache)
{
    (void)cache;
}

static size_t none_flush(struct st_rcache *cache)
{
    (void)cache;
    return 0;
}

static void none_counters(struct st_rcache *cache, struct st_rcache_counters *out)
{
    *out = none_of(cache)->n;
}

static void none_mem_report(struct st_rcache *cache, st_mem_line_fn line, void *arg)
{
    strata_mem_line_t l = {.component = "rcache_none", .category = "other", .bytes = sizeof(struct none)};

    l.bytes += st_slab_bytes(&none_of(cache)->entries);
    line(arg, &l);
}

static void none_close(struct st_rcache *cache)
{
    struct st_node *n;

    while ((n = st_list_first(&none_of(cache)->held))) {
        st_list_remove(n);
        free(ST_CONTAINER(n, struct held, node));
    }
    st_slab_destroy(&none_of(cache)->entries);
    free(cache);
}

static const struct st_rcache_ops ops = {
    .attach = none_attach,
    .detach = none_detach,
    .get = none_get,
    .put = none_put,
    .invalidate = none_invalidate,
    .apply = none_apply,
    .flush = none_flush,
    .hold = none_hold,
    .unhold = none_unhold,
    .counters = none_counters,
    .mem_report = none_mem_report,
    .close = none_close,
};

static int none_open(strata_t *s, const struct st_component *component, const void *config, struct st_rcache **out)
{
    struct none *c = calloc(1, sizeof(*c));

    (void)component, (void)config;
    if (!c)
        return STRATA_ERR_NOMEM;
    st_list_init(&c->held);
    int rc = st_slab_init(&c->entries, sizeof(struct entry), 8, 32, 0);
    if (rc != STRATA_OK) {
        free(c);
        return rc;
    }
    c->base = (struct st_rcache){.ops = &ops, .context = s, .page = st_page_size()};
    *out = &c->base;
    return STRATA_OK;
}

static const struct st_rcache_component_ops component_ops = {.open = none_open, .keeps = false};

ST_COMPONENT(rcache, none) = {
    ST_COMPONENT_HEAD("rcache", "none", "0.1.0", "registers memory for each use and undoes it at once"),
    .ops_size = sizeof(component_ops),
    .priority = 10,
    .ops = &component_ops,
};
