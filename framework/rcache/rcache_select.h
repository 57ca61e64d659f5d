/* Selection of the rcache. */
#ifndef ST_RCACHE_SELECT_H
#define ST_RCACHE_SELECT_H

#include <strata/sdk/rcache.h>

/* Sets s->rcache. `told`: something in this process will tell the cache when memory goes away; without it a component
 * that keeps registrations is only chosen when the user names it, which costs a warning. On failure the text for the
 * user is set. */
int st_rcache_select(strata_t *s, bool told);

#endif
