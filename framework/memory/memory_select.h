/* Selection of the source of memory events. */
#ifndef ST_MEMORY_SELECT_H
#define ST_MEMORY_SELECT_H

#include <strata/sdk/memory.h>

/* Finds a source that passes its self-test for the context: s->memory, or NULL when there is none, which is a failure
 * only when the user named one; then the text for the user is set. Any number of calls; the first decides. */
int st_memory_select(strata_t *s);

/* Whether the user's list names a component of the framework. */
bool st_memory_named(strata_t *s);

#endif
