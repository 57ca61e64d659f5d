/* A world of more ranks than there are: the context of each process of a job has as many ranks as it is told, of which
 * those of the job are real, and talk to each other; the others are on machines that no rank sends to. */
#ifndef MEMSCALE_VIRTUAL_WORLD_H
#define MEMSCALE_VIRTUAL_WORLD_H

#include <strata/host.h>

struct meeting;
struct virtual_world;

/* Of `n_ranks` ranks the first `n_real`, of which this process is one (PMIX_RANK). They exchange addresses by files in
 * FOLDER, where they meet. NULL: errno says why. Freed by the process's end. */
struct virtual_world *virtual_world_make(const char *folder, struct meeting *m, int n_ranks, int n_real);
/* What strata_init takes; valid until the end of the context. */
const strata_host_t *virtual_world_host(struct virtual_world *w);
/* strata_init has returned: what this rank has not published by now it never will. */
void virtual_world_started(struct virtual_world *w);

#endif
