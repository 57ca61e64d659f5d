/* What strata-run tells the user, on stderr: one line each, with rank, host, pid and cause. */
#ifndef RUN_REPORT_H
#define RUN_REPORT_H

#include "job.h"

void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, straight to standard error: for a sink that has no memory. */
void report_now(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whole lines of others, as they are. */
void report_text(const char *text, size_t n);
/* From now on all that is to be said waits in this sink for the reader of standard error, behind what ranks have said;
 * NULL: it goes there straight, and a slow reader holds up the main thread. */
struct sink;
void report_by(struct sink *sink);
/* "was killed by signal 9 (Killed)", "exited with status 3 before finalize" */
void report_cause(const struct rank *r, char *out, size_t size);
void report_rank_failed(const struct job *job, int rank);
void report_abort(const struct job *job, int rank, int status, const char *reason);
void report_timeout(const struct job *job);

#endif
