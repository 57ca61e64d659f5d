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

void report_rank_failed(const struct job *job, int rank)
{
    const struct rank *r = &job->ranks[rank];
    const char *when = r->joined && !r->finalized ? " before finalize" : "";
    const char *then = job->options->keep_going || job->n_ended == job->options->n ? "" : "; ending the job";
    if (WIFSIGNALED(r->wait_status))
        report_error("rank %d on %s (pid %ld) was killed by signal %d (%s)%s%s", rank, job->host, (long)r->pid,
                     WTERMSIG(r->wait_status), strsignal(WTERMSIG(r->wait_status)),
                     WCOREDUMP(r->wait_status) ? ", core dumped" : "", then);
    else
        report_error("rank %d on %s (pid %ld) exited with status %d%s%s", rank, job->host, (long)r->pid,
                     WEXITSTATUS(r->wait_status), when, then);
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
