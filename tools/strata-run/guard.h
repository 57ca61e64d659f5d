/* A small process that outlives a strata-run that was killed: it ends the ranks' process groups and removes the
 * session's folder. */
#ifndef RUN_GUARD_H
#define RUN_GUARD_H

#include <sys/types.h>
#include "tmpdir.h"

struct guard {
    pid_t pid;
    int pipe; /* write end */
};

/* To be called while the process has one thread. -1 and a message. */
int guard_create(const struct tmpdir *dir, struct guard *out);
void guard_add(const struct guard *guard, pid_t group);
void guard_drop(const struct guard *guard, pid_t group); /* the group is empty: its number may be used again */
/* All is well: it leaves without touching anything. */
void guard_dismiss(struct guard *guard);

#endif
