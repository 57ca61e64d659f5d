/* Selection of the mpool, and the memory that users ask for. */
#ifndef ST_MPOOL_SELECT_H
#define ST_MPOOL_SELECT_H

#include <strata/sdk/mpool.h>

/* Selects the mpool where a setting names it, so that one that fails is an error of strata_init; st_mpool selects it
 * otherwise. s->mpool is NULL while there is none. */
int st_mpool_select(strata_t *s);
void st_mpool_close(strata_t *s);

/* mem_alloc.c: gives back what the user has not, before the transports close. */
void st_mem_free_all(strata_t *s);

#endif
