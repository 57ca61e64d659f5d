/* Selection of the rcache. */
#ifndef ST_RCACHE_SELECT_H
#define ST_RCACHE_SELECT_H

#include <strata/sdk/rcache.h>

/* Before the first BTL opens: chooses source and cache at once when the user named one of them, so that a name that
 * cannot be used is an error here; else the first call of st_rcache does. On failure the text for the user is set. */
int st_rcache_prepare(strata_t *s);
/* After the last BTL has opened: records that nobody needed a cache, if so. */
void st_rcache_settle(strata_t *s);
/* Ends the cache, if there is one; nobody tells it anything any more. */
void st_rcache_close(strata_t *s);

#endif
