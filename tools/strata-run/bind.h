/* Which processors each rank may use. */
#ifndef RUN_BIND_H
#define RUN_BIND_H

#include <sched.h>
#include "options.h"

struct binding {
    cpu_set_t *sets; /* one per core that we may use; NULL: do not bind */
    int n_sets;
};

/* Finds the cores within our own affinity mask. Core i % n_sets is rank i's. 0, or -1 with the message printed. */
int binding_create(const struct run_options *options, struct binding *out);
void binding_destroy(struct binding *binding);

#endif
