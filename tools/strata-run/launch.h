/* Starting the ranks. */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include "bind.h"
#include "environment.h"
#include "guard.h"
#include "io.h"
#include "job.h"

struct launch {
    char *path;             /* of the program */
    struct environment env; /* of the ranks; one slot is PMIX_RANK and changes from rank to rank */
    size_t rank_slot;
    int errors[2]; /* pipe on which a child says why it could not exec */
};

/* Finds the program: 0, or RUN_NOT_FOUND / RUN_NOT_EXECUTABLE with the message printed. *path is malloc'ed. */
int launch_find(const char *program, char **path);
/* Prepares the environment: ours, -x, --mca, the server's. `reports`: the folder in which the ranks leave records, or
 * NULL. 0, or -1 with the message printed. */
int launch_prepare(const struct job *job, char *path, const char *reports, struct launch *out);
/* Starts all ranks. 0, or -1 with the message printed; those started are then in the job. */
int launch_ranks(struct launch *launch, struct job *job, struct io *io, const struct binding *binding,
                 const struct guard *guard);
/* To be called when launch->errors[0] is readable: reports a failed exec and fails the job. */
void launch_poll(struct launch *launch, struct job *job);
void launch_destroy(struct launch *launch);

#endif
