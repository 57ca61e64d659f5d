/* bml_r2 as a component: parameters and open. */
#include "bml_r2.h"

static const struct st_param params[] = {
    {"max_paths", ST_PARAM_INT, offsetof(struct bml_r2_config, max_paths), "8", 1, ST_BML_MAX_PATHS, NULL,
     "How many transports or rails to one peer are used at most.", 4, NULL},
};

static int r2_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl **btls, size_t n_btls,
                   struct st_bml **out)
{
    (void)c;
    return bml_r2_make(s, config, btls, n_btls, out);
}

static const struct st_bml_component_ops ops = {.open = r2_open};

ST_COMPONENT(bml, r2) = {
    ST_COMPONENT_HEAD("bml", "r2", "0.1.0", "chooses the transports to each peer at the first message to it"),
    .ops_size = sizeof(struct st_bml_component_ops),
    .priority = 50,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct bml_r2_config),
    .ops = &ops,
};
