/* Counters that the base reads for each component of a framework. */
#ifndef ST_BASE_COUNTERS_H
#define ST_BASE_COUNTERS_H

#include <strata/sdk/component.h>

/* Rows that every component of the framework has, besides its own; NULL and *n == 0: none. */
const struct st_counter *st_counters_common(const char *framework, size_t *n);

#endif
