/* An environment under construction. */
#ifndef RUN_ENVIRONMENT_H
#define RUN_ENVIRONMENT_H

#include <stddef.h>
#include "options.h"

struct environment {
    char **list; /* NULL-terminated, all malloc'ed */
    size_t n, room;
    int failed; /* out of memory at some point */
};

void environment_set(struct environment *env, const char *name, size_t name_length, const char *value);
/* The value of a variable, until it is set anew; NULL: it is not set. */
const char *environment_get(const struct environment *env, const char *name);
/* Ours without what another launcher left, then -x, settings of libpmix that neither has, then --mca as STRATA_MCA_...
 * and STRATA_COMMAND_LINE. */
int environment_create(const struct run_options *options, struct environment *out);
void environment_destroy(struct environment *env);

#endif
