/* The job's fence, with progress while it lasts. */
#ifndef ST_BASE_FENCE_H
#define ST_BASE_FENCE_H

#include <strata/strata.h>

int st_fence(strata_t *s);

#endif
