/* A cache for tests of the core (fake_stack.h): it can be selected and closed. No BTL there registers memory. */
#include <stdlib.h>
#include <strata/sdk/rcache.h>
#include "support/fake_stack.h"

static int attach(struct st_rcache *cache, struct st_rcache_client *client)
{
    (void)cache, (void)client;
    return STRATA_ERR_NOMEM;
}
static void detach(struct st_rcache *cache, struct st_rcache_client *client)
{
    (void)cache, (void)client;
}
static int get(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len, uint32_t access,
               struct st_rcache_entry **out)
{
    (void)cache, (void)client, (void)base, (void)len, (void)access, (void)out;
    return STRATA_ERR_NOMEM;
}
static void put(struct st_rcache *cache, struct st_rcache_entry *entry)
{
    (void)cache, (void)entry;
}
static void invalidate(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    (void)cache, (void)from, (void)to;
}
static void apply(struct st_rcache *cache)
{
    (void)cache;
}
static size_t flush(struct st_rcache *cache)
{
    (void)cache;
    return 0;
}
static void counters(struct st_rcache *cache, struct st_rcache_counters *out)
{
    (void)cache;
    *out = (struct st_rcache_counters){0};
}
static void mem_report(struct st_rcache *cache, st_mem_line_fn line, void *arg)
{
    (void)cache, (void)line, (void)arg;
}
static void close_cache(struct st_rcache *cache)
{
    free(cache);
}
static const struct st_rcache_ops ops = {
    .attach = attach,
    .detach = detach,
    .get = get,
    .put = put,
    .invalidate = invalidate,
    .apply = apply,
    .flush = flush,
    .counters = counters,
    .mem_report = mem_report,
    .close = close_cache,
};

static int open_cache(strata_t *s, const struct st_component *c, const void *config, struct st_rcache **out)
{
    struct st_rcache *cache = malloc(sizeof(*cache));
    (void)c, (void)config;
    if (!cache)
        return STRATA_ERR_NOMEM;
    *cache = (struct st_rcache){.ops = &ops, .context = s, .page = 4096};
    *out = cache;
    return STRATA_OK;
}
static const struct st_rcache_component_ops component_ops = {.open = open_cache};
const struct st_component fake_rcache = {ST_COMPONENT_HEAD("rcache", "frcache", "1", "fake"),
                                         .ops_size = sizeof(component_ops), .priority = 90, .ops = &component_ops};
