/* --tuning: by which protocol messages to each peer go, by length and traffic, and the facts that follow from. */
#ifndef STRATA_INFO_TUNING_H
#define STRATA_INFO_TUNING_H

#include "info.h"

/* Shows it from rank 0 of the job that this process is in; without a job it becomes one, of two ranks, by strata-run,
 * and returns only if that fails. Returns the exit status. */
int tuning_run(const struct options *o, char **argv);

#endif
