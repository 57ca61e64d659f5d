/* The job: its ranks, and what happened to it. Owned by the main thread, but for what is marked. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "options.h"

/* The job's name begins so, with strata-run's process id. */
#define JOB_NAME_BEGIN "strata-%ld-"

struct rank {
    pid_t pid; /* also its process group; 0: not started */
    bool ended;
    bool group_gone; /* its process group is empty */
    int wait_status;
    _Atomic(bool) joined;    /* written by PMIx's thread: it called PMIx_Init */
    _Atomic(bool) finalized; /* written by PMIx's thread: it called PMIx_Finalize */
    _Atomic(bool) lost;      /* written by PMIx's thread: its connection ended without that */
    double judge_at;         /* when it counts as ended without PMIx_Finalize; 0: not in doubt */
};

struct job {
    const struct run_options *options;
    char host[256];
    char nspace[256]; /* as large as PMIx reads */
    struct rank *ranks;
    int n_started, n_ended;
    int n_doubts;    /* ranks that have ended and are not judged */
    int exit_status; /* of strata-run; the first failure sets it */
    bool failed;     /* something has set exit_status */
    int forwarded;   /* signal by which we were asked to end, passed on to the ranks; 0: none */
    bool ending;     /* the ranks have been told to end */
    double kill_at;  /* seconds of run_now: when those left are killed; 0: not set */
    double end_at;   /* timeout of the job; 0: none */
};

/* Lives until strata-run exits. */
int job_create(const struct run_options *options, struct job *out);

double run_now(void); /* monotonic seconds */

/* A rank was reaped. Decides whether that is a failure, reports it, and ends the others; where PMIx's thread may be
 * late, when it has told. */
void job_rank_ended(struct job *job, int rank, int wait_status);
int job_rank_of(const struct job *job, pid_t pid); /* or -1 */
/* A rank asked for the end of the job. */
void job_aborted(struct job *job, int rank, int status, const char *reason);
/* Sets the exit status unless an earlier failure has. */
void job_fail(struct job *job, int exit_status);
/* TERM now, KILL soon. Idempotent. */
void job_end(struct job *job);
void job_signal(const struct job *job, int sig); /* to every rank's process group */
/* Does what is due now; returns milliseconds until the next thing is due, 0 when ranks were judged, -1: nothing. */
int job_tick(struct job *job);
/* Kills what ranks left behind in their process groups, and in others of our session. */
void job_sweep(const struct job *job);

#endif
