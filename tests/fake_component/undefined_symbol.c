/* Needs a function that nobody has. */
#include "fake.h"

int a_function_that_nobody_has(void);

static int open_it(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    (void)s;
    (void)c;
    (void)config;
    (void)mods;
    (void)n;
    return a_function_that_nobody_has();
}
static const struct st_btl_component_ops ops = {.open = open_it};

ST_COMPONENT(btl, undefined_symbol) = {ST_COMPONENT_HEAD("btl", "undefined_symbol", "1.0", "a transport in need"),
                                       .ops_size = sizeof(ops), .ops = &ops};
