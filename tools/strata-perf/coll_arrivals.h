/* Arrival of ranks at a collective: who comes when, and what times of arrival and exit say. */
#ifndef PERF_COLL_ARRIVALS_H
#define PERF_COLL_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one rank in one call, seconds by the machine's monotonic clock. */
struct coll_times {
    double arrival, exit;
};
_Static_assert(sizeof(struct coll_times) == 2 * sizeof(double), "gathered as doubles");

/* Samples of one size and MIF, one a batch, us. */
struct coll_cell {
    bool ok;           /* memory was there */
    size_t n;          /* batches */
    double *in_call;   /* mean time in the call, over ranks and calls: the paper's figure */
    double *after;     /* from the last arrival to the last exit */
    double *skew;      /* from the first arrival to the last: what came of the delays */
    double *exit_skew; /* from the first exit to the last */
    double *last_call; /* time in the call of the rank that arrives last: all others' data can be there */
    double base;       /* time of one message */
    double planned;    /* skew that the delays have on the mean */
    double resolution; /* skew without any delay; a smaller planned one is not made by the delays */
};

void coll_cell_make(struct coll_cell *cell, size_t batches);
void coll_cell_free(struct coll_cell *cell);
/* times[rank * calls + call] are those of a batch. */
void coll_cell_add(struct coll_cell *cell, size_t batch, const struct coll_times *times, size_t calls, size_t ranks);
/* Median skew. */
double coll_cell_skew(const struct coll_cell *cell);
/* Seconds that the rank comes late in that call, the same with every library. late == 0: random, uniform up to
 * `longest`; else by `longest` if it is one of `late` per cent of the ranks, which take turns; nobody when
 * longest == 0. */
double coll_delay(size_t call, int rank, int ranks, unsigned late, double longest);
/* Mean of the skew that these delays make, in the unit of `longest`. */
double coll_planned(int ranks, unsigned late, double longest);
/* How many ranks come late: at least one, and never all. */
int coll_late_ranks(int ranks, unsigned late);

#endif
