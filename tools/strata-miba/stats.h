/* Samples of one figure, and what is said of them. */
#ifndef MIBA_STATS_H
#define MIBA_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_SAMPLES 1001u

struct samples {
    double value[MOST_SAMPLES];
    unsigned n;
};

struct summary {
    double median, q1, q3, min, max; /* quartiles by linear interpolation between neighbours (type 7) */
    unsigned n;
};

void samples_add(struct samples *s, double value);       /* beyond MOST_SAMPLES: dropped */
struct summary samples_summary(const struct samples *s); /* n is 0 when there are none, and all figures, too */

/* Times by which something is divided. A difference of no time counts as the shortest other one, so that median and
 * quartiles keep their rank. False: these are half of all or more, and the median is one of them; n is 0 when there are
 * no others. */
bool samples_positive(struct samples *s);
/* Nanoseconds of a message become a rate of `bytes` in MB/s; the same of differences of no time. */
bool samples_to_rate(struct samples *s, double bytes);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t miba_now(void);

#endif
