/* Thresholds: --max NAME.VALUE=LIMIT and --min, for monitoring. */
#ifndef MIBA_THRESHOLDS_H
#define MIBA_THRESHOLDS_H

#include "results.h"

struct threshold {
    char name[48];  /* of a test or a figure */
    uint64_t x;     /* of what the test varies */
    bool any;       /* no value was given: all of them */
    bool most;      /* --max; else --min */
    double limit;   /* nanoseconds, MB/s, or a plain number */
    enum unit unit; /* the limit's; UNIT_COUNT: a plain number, in the figure's own unit */
    const char *text;
};

/* "latency.8=2us", "bandwidth.64k=5GB/s", "qp_create=1ms". NULL: taken; else what is wrong. */
const char *threshold_take(struct threshold *t, const char *text, bool most);
/* Prints a line on stderr for each median beyond its threshold, for each that is marked, since it does not show what it
 * should, and for each threshold that met no result. How many. */
unsigned thresholds_check(const struct threshold *t, unsigned n, const struct results *r);

#endif
