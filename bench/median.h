/* The median of samples, for the programs of this folder. */
#ifndef STRATA_BENCH_MEDIAN_H
#define STRATA_BENCH_MEDIAN_H

#include <stdlib.h>

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the samples; of an even number the median is the mean of the two in the middle. */
static inline double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#endif
