/* rcache_tree as a component: parameters and open. */
#include "cache.h"

static const struct st_param params[] = {
    {"max_bytes", ST_PARAM_SIZE, offsetof(struct cache_config, max_bytes), "0", 0, 0, "bytes",
     "Memory that is kept registered at most, beyond what is in use; 0: three quarters of what this process may lock, "
     "and "
     "at most a quarter of the machine's memory.",
     3, NULL},
    {"max_entries", ST_PARAM_INT, offsetof(struct cache_config, max_entries), "65536", 1, 1e9, "registrations",
     "How many registrations are kept at most, beyond those in use.", 4, NULL},
};

static int cache_open(strata_t *s, const struct st_component *component, const void *config, struct st_rcache **out)
{
    (void)component;
    return cache_make(s, config, out);
}

static const struct st_rcache_component_ops component_ops = {.open = cache_open, .keeps = true};

ST_COMPONENT(rcache, tree) = {
    ST_COMPONENT_HEAD("rcache", "tree", "0.1.0", "keeps registrations until their memory goes away or room is needed"),
    .ops_size = sizeof(component_ops),
    .priority = 50,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct cache_config),
    .ops = &component_ops,
};
