/* A transport in two objects: the plugin, whose open asks the body. */
#include "fake.h"

#include <strata/sdk/component_body.h>

ST_BODY_DECLARE(btl, split, struct st_btl_component_ops);

static int open_body(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    char why[512];
    const struct st_btl_component_ops *body = ST_BODY_OF(btl, split, c, why, sizeof(why));
    *n = 0;
    if (!body) {
        st_reject(s, c, "%s", why);
        return STRATA_ERR_SYSTEM;
    }
    return body->open(s, c, config, mods, n);
}

static const struct st_btl_component_ops component_ops = {.open = open_body};

ST_COMPONENT(btl, split) = {ST_COMPONENT_HEAD("btl", "split", "1.0", "fake"), .ops_size = sizeof(component_ops),
                            .ops = &component_ops};
