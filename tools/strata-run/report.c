/* Messages to the user. */
#define _GNU_SOURCE
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void report_error(const char *format, ...)
{
    va_list args;
    char line[2048];
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(stderr, "strata-run: %s\n", line);
}

void report_cause(const struct rank *r, char *out, size_t size)
{
    if (WIFSIGNALED(r->wait_status))
        snprintf(out, size, "was killed by signal %d (%s)%s", WTERMSIG(r->wait_status),
                 strsignal(WTERMSIG(r->wait_status)), WCOREDUMP(r->wait_status) ? ", core dumped" : "");
    else
        snprintf(out, size, "exited with status %d%s", WEXITSTATUS(r->wait_status),
                 r->joined && !r->finalized ? " before finalize" : "");
}

void report_rank_failed(const struct job *job, int rank)
{
    const struct rank *r = &job->ranks[rank];
    char cause[128];
    report_cause(r, cause, sizeof(cause));
    report_error("rank %d on %s (pid %ld) %s%s", rank, job->host, (long)r->pid, cause,
                 job->options->keep_going || job->n_ended == job->options->n ? "" : "; ending the job");
}

void report_abort(const struct job *job, int rank, int status, const char *reason)
{
    report_error("rank %d on %s (pid %ld) aborted the job with status %d: %s", rank, job->host,
                 (long)job->ranks[rank].pid, status, reason && *reason ? reason : "no reason given");
}

void report_timeout(const struct job *job)
{
    report_error("timeout: the job has not ended within %g seconds (%d of %d ranks still run); ending it",
                 job->options->timeout_s, job->options->n - job->n_ended, job->options->n);
}
