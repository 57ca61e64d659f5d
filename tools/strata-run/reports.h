/* Reports of the whole job, merged from the records that its ranks leave in a folder (framework/base/job_report.h): at
 * the end, and on SIGUSR1 while the job runs. */
#ifndef RUN_REPORTS_H
#define RUN_REPORTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include "io.h"
#include "job.h"

/* How long the ranks have to answer. */
#define REPORTS_WAIT_S 2.0

struct reports {
    const struct job *job;
    char folder[4200];
    _Atomic(uint32_t) *ask; /* mapped by all ranks; NULL: no report is wanted */
    uint32_t number;        /* of the last question */
    double until;           /* seconds of run_now: when the answers are shown, whoever is missing; 0: none is awaited */
    bool again;             /* asked while answers were awaited */
    FILE *file;             /* --report-file, or NULL: standard error */
};

/* Makes the folder below `dir`; nothing when no report is wanted. 0, or -1 with the message printed. */
int reports_create(struct reports *r, const struct job *job, const char *dir);
void reports_destroy(struct reports *r);
/* Whether SIGUSR1 asks for reports, instead of being passed on. */
bool reports_wanted(const struct run_options *options);
/* Asks all ranks for a record. */
void reports_ask(struct reports *r);
/* Shows the answers once they are there, or the time is over. Returns when to look again, in seconds of run_now; 0: no
 * answer is awaited. */
double reports_tick(struct reports *r, struct io *io);
/* The job has ended: shows what its ranks have left. */
void reports_end(struct reports *r, struct io *io);

#endif
