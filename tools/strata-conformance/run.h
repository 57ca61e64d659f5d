/* The two ways to run the cases. */
#ifndef CONFORMANCE_RUN_H
#define CONFORMANCE_RUN_H

#include "cases.h"
#include "options.h"
#include "report.h"

/* Whether a launcher started this process, as one of a job. */
bool run_launched(void);
/* Ranks are the processes of the job: all cases in one context, all ranks in step. A case that fails ends the job. The
 * exit status. */
int run_processes(const struct options *o, const struct conf_case *cases, size_t n);
/* Ranks are threads: each case in a child process, so that one which fails or crashes ends no other. The exit status.
 */
int run_threads(const struct options *o, const struct conf_case *cases, size_t n);

#endif
