/* What strata-run tells the user, on stderr: one line each, with rank, host, pid and cause. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "job.h"

void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "was killed by signal 9 (Killed)", "exited with status 3 before finalize" */
void report_cause(const struct rank *r, char *out, size_t size);
void report_rank_failed(const struct job *job, int rank);
void report_abort(const struct job *job, int rank, int status, const char *reason);
void report_timeout(const struct job *job);

#endif
