/* Where the ranks of a job wait for each other without a message: a page that all map. A message would make a
 * connection more, and who waits in an MPI takes a processor from the pair that is measured. */
#ifndef MEMSCALE_MEETING_H
#define MEMSCALE_MEETING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum meeting_stage {
    MEETING_SPOKEN,
    MEETING_MEASURED,
    MEETING_PLAYED,
    MEETING_STARTED, /* of a virtual world: strata_init has returned */
    MEETING_FENCED,  /* of a virtual world: calls of all fences */
    MEETING_STAGES
};

struct meeting {
    _Atomic(uint32_t) here[MEETING_STAGES]; /* ranks that have come so far; futexes */
};

/* Makes FOLDER/meeting, before the job. False: errno says why. */
bool meeting_create(const char *folder);
/* Maps it; NULL: errno says why. */
struct meeting *meeting_open(const char *folder);
/* The calling rank has come to `stage`; returns at once. */
void meeting_come(struct meeting *m, enum meeting_stage stage);
bool meeting_is_full(struct meeting *m, enum meeting_stage stage, int n);
/* Sleeps until `n` ranks have come. */
void meeting_wait(struct meeting *m, enum meeting_stage stage, int n);

#endif
