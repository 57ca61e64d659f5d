/* btl_self as a component: parameters and open. */
#include <stdlib.h>
#include "btl_self.h"

static const struct st_param params[] = {
    {"ring", ST_PARAM_SIZE, offsetof(struct btl_self_config, ring), "64k", 4096, 1 << 30, "bytes",
     "Size of the queue of messages to oneself, rounded up to a power of two.", 6, NULL},
    {"eager_limit", ST_PARAM_SIZE, offsetof(struct btl_self_config, eager_limit), "4k", 0, 1 << 28, "bytes",
     "Largest message that is copied into the queue; longer ones are copied once, straight to the receiver.", 4, NULL},
};

static int self_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    struct st_btl **list = malloc(sizeof(*list));
    int rc;

    if (!list)
        return STRATA_ERR_NOMEM;
    rc = btl_self_make(s, c, config, st_rte(s)->rank, &list[0]);
    if (rc != STRATA_OK) {
        free(list);
        return rc;
    }
    *mods = list;
    *n = 1;
    return STRATA_OK;
}

static const struct st_btl_component_ops ops = {.open = self_open};

ST_COMPONENT(btl, self) = {
    ST_COMPONENT_HEAD("btl", "self", "0.1.0", "messages of a rank to itself, within the process"),
    .ops_size = sizeof(struct st_btl_component_ops),
    .priority = 50,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct btl_self_config),
    .ops = &ops,
};
