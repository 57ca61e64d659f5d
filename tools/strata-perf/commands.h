/* Commands of strata-perf that are not a measuring loop in a job. Each returns the process' exit status. */
#ifndef PERF_COMMANDS_H
#define PERF_COMMANDS_H

#include <strata/host.h>
#include "options.h"

int perf_world(const struct perf_options *o);
/* argv: of the process, which --cluster starts again. */
int perf_compare(const struct perf_options *o, char **argv);
int perf_channel(const struct perf_options *o);

/* strata_init with the options' parameters; says what is wrong. 0, or the exit status: 2 for what the user can mend. */
int perf_open_context(const struct perf_options *o, const struct strata_host *host, strata_t **out);

#endif
