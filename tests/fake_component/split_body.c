/* The body of the transport in split.c: it says that it was reached. */
#include "fake.h"

#include <strata/sdk/component_body.h>

static int open_fails(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    (void)config;
    (void)mods;
    *n = 0;
    st_reject(s, c, "the body was asked");
    return STRATA_ERR_UNSUPPORTED;
}

ST_BODY(btl, split, struct st_btl_component_ops) = {.open = open_fails};
