/* Which processors each rank may use. */
#ifndef RUN_BIND_H
#define RUN_BIND_H

#include <sched.h>
#include "options.h"

struct job;

struct binding {
    cpu_set_t *sets; /* in the order in which ranks take them; NULL: do not bind */
    int n_sets;
};

/* Chooses among the processors of our own affinity mask. Set i % n_sets is rank i's. 0, or -1 with the message
 * printed. */
int binding_create(const struct run_options *options, struct binding *out);
void binding_show(const struct binding *binding, const struct job *job); /* a line of standard error per rank */
void binding_destroy(struct binding *binding);

#endif
