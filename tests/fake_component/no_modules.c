/* Its open() succeeds and brings nothing. */
#include "fake.h"

static int open_nothing(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    (void)s;
    (void)c;
    (void)config;
    *mods = NULL;
    *n = 0;
    return STRATA_OK;
}
static const struct st_btl_component_ops ops = {.open = open_nothing};

ST_COMPONENT(btl, no_modules) = {ST_COMPONENT_HEAD("btl", "no_modules", "1.0", "a transport without modules"),
                                 .ops_size = sizeof(ops), .ops = &ops};
