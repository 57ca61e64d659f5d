/* Costs by difference: batches of two counts in turn, and what one operation more takes. */
#ifndef MIBA_MEASURE_H
#define MIBA_MEASURE_H

#include "stats.h"
#include "test.h"

#define MOST_FIGURES 6u

/* Carries out `n` operations (0: none, but what a batch has besides) and adds to ns[i] the nanoseconds of figure i. */
typedef enum miba_status (*batch_fn)(void *arg, unsigned n, double ns[MOST_FIGURES]);

struct measure {
    batch_fn run;
    void *arg;
    unsigned figures;
    unsigned most; /* operations of a batch at most; 1: counts are 0 and 1 */
    unsigned step; /* counts are multiples of it, both: a window; 0: any */
    double scale;  /* of a sample: 0.5 makes half a round trip of one */
};

/* Fills samples[0 .. figures) with nanoseconds of one operation. */
enum miba_status measure(struct miba *m, const struct measure *what, struct samples samples[MOST_FIGURES]);
/* The same, and adds a result in nanoseconds for each figure, by its name. */
enum miba_status measure_and_report(struct miba *m, const struct miba_case *c, const struct measure *what,
                                    const char *const figures[]);

#endif
