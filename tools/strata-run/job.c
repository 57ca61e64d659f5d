/* Decides what the end of a rank means for the job. */
#include "job.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "report.h"
#include "server.h"
#include "strays.h"

/* From the first failure to SIGKILL: time for the others to clean up, within the second that we promise. */
static const double grace_s = 0.4;
/* For the word of PMIx's thread on a rank that has ended, if libpmix never says that the connection is lost. */
static const double doubt_s = 10;

double run_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int job_create(const struct run_options *options, struct job *out)
{
    memset(out, 0, sizeof(*out));
    out->options = options;
    out->ranks = calloc((size_t)options->n, sizeof(*out->ranks));
    if (!out->ranks)
        return -1;
    if (gethostname(out->host, sizeof(out->host) - 1) != 0)
        strcpy(out->host, "localhost");
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(out->nspace, sizeof(out->nspace), JOB_NAME_BEGIN "%llx", (long)getpid(),
             (unsigned long long)t.tv_sec * 1000000ull + (unsigned long long)t.tv_nsec / 1000ull);
    if (options->timeout_s > 0)
        out->end_at = run_now() + options->timeout_s;
    return 0;
}

int job_rank_of(const struct job *job, pid_t pid)
{
    for (int i = 0; i < job->options->n; i++)
        if (job->ranks[i].pid == pid && !job->ranks[i].ended)
            return i;
    return -1;
}

void job_fail(struct job *job, int exit_status)
{
    if (!job->failed)
        job->exit_status = exit_status;
    job->failed = true;
}

void job_signal(const struct job *job, int sig)
{
    for (int i = 0; i < job->options->n; i++)
        if (job->ranks[i].pid && !job->ranks[i].ended)
            (void)kill(-job->ranks[i].pid, sig);
}

void job_end(struct job *job)
{
    if (job->ending)
        return;
    job->ending = true;
    job->kill_at = run_now() + grace_s;
    job_signal(job, SIGTERM);
    job_signal(job, SIGCONT); /* a stopped rank cannot act on SIGTERM */
}

/* What is wrong about this end, as the exit status that follows from it; 0: nothing. */
static int fault_of(const struct rank *r)
{
    if (WIFSIGNALED(r->wait_status))
        return RUN_SIGNAL_BASE + WTERMSIG(r->wait_status);
    if (WEXITSTATUS(r->wait_status) != 0)
        return WEXITSTATUS(r->wait_status);
    return r->joined && !r->finalized ? RUN_FAILED : 0;
}

static void judge(struct job *job, int rank)
{
    struct rank *r = &job->ranks[rank];
    int wait_status = r->wait_status, fault = fault_of(r);
    job->n_ended++;
    if (!fault)
        return;
    bool asked = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == job->forwarded;
    if (!job->ending && !asked)
        report_rank_failed(job, rank);
    job_fail(job, fault);
    if (!job->options->keep_going)
        job_end(job);
    else
        server_tell_failed(job, rank);
}

/* It ended well, but its PMIx_Finalize has not been seen: PMIx_Finalize waits two seconds for a server that is late. */
static bool in_doubt(const struct job *job, const struct rank *r)
{
    return !job->ending && WIFEXITED(r->wait_status) && WEXITSTATUS(r->wait_status) == 0 && r->joined &&
           !r->finalized && !r->lost && run_now() < r->judge_at;
}

/* Those of whom all is known by now. */
static void judge_all(struct job *job)
{
    for (int i = 0; i < job->options->n && job->n_doubts > 0; i++) {
        struct rank *r = &job->ranks[i];
        if (r->judge_at <= 0 || in_doubt(job, r))
            continue;
        r->judge_at = 0;
        job->n_doubts--;
        judge(job, i);
    }
}

void job_rank_ended(struct job *job, int rank, int wait_status)
{
    struct rank *r = &job->ranks[rank];
    r->ended = true;
    r->wait_status = wait_status;
    r->judge_at = run_now() + doubt_s;
    job->n_doubts++;
    judge_all(job);
}

void job_aborted(struct job *job, int rank, int status, const char *reason)
{
    if (!job->ending)
        report_abort(job, rank, status, reason);
    job_fail(job, (status & 0xff) ? status & 0xff : RUN_FAILED);
    job_end(job);
}

int job_tick(struct job *job)
{
    double now = run_now(), next = 0;
    int ended = job->n_ended;

    judge_all(job);
    if (job->end_at > 0 && now >= job->end_at) {
        job->end_at = 0;
        if (!job->ending)
            report_timeout(job);
        job_fail(job, RUN_TIMEOUT);
        job_end(job);
    }
    if (job->kill_at > 0 && now >= job->kill_at) {
        job->kill_at = now + grace_s; /* again, for what was forked meanwhile */
        job_signal(job, SIGKILL);
    }
    if (job->end_at > 0)
        next = job->end_at;
    if (job->kill_at > 0 && (next <= 0 || job->kill_at < next))
        next = job->kill_at;
    if (job->n_doubts > 0 && (next <= 0 || now + doubt_s < next))
        next = now + doubt_s;
    if (job->n_ended > ended) /* the last one, perhaps: the caller looks before it sleeps */
        return 0;
    if (next <= 0)
        return -1;
    double ms = ceil((next - now) * 1e3);
    return ms > 1e9 ? 1000000000 : (int)ms;
}

void job_sweep(const struct job *job)
{
    for (int i = 0; i < job->options->n; i++)
        if (job->ranks[i].pid && !job->ranks[i].group_gone)
            (void)kill(-job->ranks[i].pid, SIGKILL);
    strays_kill(getpid(), getsid(0));
}
