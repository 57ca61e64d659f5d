/* Signals that strata-run receives, through a file descriptor. */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <signal.h>
#include "guard.h"
#include "job.h"

struct signals {
    int fd;
    sigset_t before; /* the mask that the ranks get */
    int endings;     /* how often we were asked to end */
};

/* Before any other thread exists: threads inherit the mask. */
int signals_create(struct signals *out);
void signals_destroy(struct signals *signals);
/* To be called when fd is readable: reaps ranks, forwards the rest. */
void signals_poll(struct signals *signals, struct job *job, const struct guard *guard);

#endif
