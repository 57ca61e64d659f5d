/* Messages to the user. */
#define _GNU_SOURCE
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "sink.h"

/* Of the main thread, the only one that reports. */
static struct sink *report_sink;

void report_by(struct sink *sink)
{
    report_sink = sink;
}

void report_text(const char *text, size_t n)
{
    if (!report_sink) {
        (void)fwrite(text, 1, n, stderr);
        return;
    }
    if (report_sink->unfinished) /* part of a rank's line */
        sink_put(report_sink, "\n", 1);
    report_sink->unfinished = NULL;
    sink_put(report_sink, text, n);
}

enum { LINE_BYTES = 2048 };

/* "strata-run: ...", with its end. The length. */
static __attribute__((format(printf, 2, 0))) size_t line_of(char line[LINE_BYTES], const char *format, va_list args)
{
    size_t n = (size_t)snprintf(line, LINE_BYTES, "strata-run: ");
    vsnprintf(line + n, LINE_BYTES - n - 1, format, args);
    return strlen(strcat(line, "\n"));
}

void report_error(const char *format, ...)
{
    va_list args;
    char line[LINE_BYTES];
    va_start(args, format);
    size_t n = line_of(line, format, args);
    va_end(args);
    report_text(line, n);
}

void report_now(const char *format, ...)
{
    va_list args;
    char line[LINE_BYTES];
    va_start(args, format);
    size_t n = line_of(line, format, args);
    (void)fwrite(line, 1, n, stderr);
    va_end(args);
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
