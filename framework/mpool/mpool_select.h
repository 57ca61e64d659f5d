/* Selection of the mpool, and the memory that users ask for. */
#ifndef ST_MPOOL_SELECT_H
#define ST_MPOOL_SELECT_H

#include <strata/sdk/mpool.h>

/* s->mpool, or NULL when no component is installed. */
int st_mpool_select(strata_t *s);
void st_mpool_close(strata_t *s);

/* mem_alloc.c: gives back what the user has not, before the transports close. */
void st_mem_free_all(strata_t *s);

#endif
