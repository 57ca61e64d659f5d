/* Signals that strata-run receives, through a file descriptor. */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include "guard.h"
#include "job.h"

struct signals {
    int fd;
    int endings;  /* how often we were asked to end */
    bool late;    /* once when all ranks had ended */
    bool reports; /* SIGUSR1 asks for reports, and is not passed on */
    bool asked;   /* it has */
};

/* Before any other thread exists: threads inherit the mask. */
int signals_create(struct signals *out);
void signals_destroy(struct signals *signals);
/* Between clone and exec: a rank starts with no signal blocked or ignored, whatever ours are, but for SIGHUP under
 * nohup. */
void signals_reset_in_child(void);
/* To be called when fd is readable: reaps ranks, forwards the rest. */
void signals_poll(struct signals *signals, struct job *job, const struct guard *guard);

#endif
