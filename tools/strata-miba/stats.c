/* Samples of one figure, and what is said of them. */
#include "config.h"
#include "stats.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void samples_add(struct samples *s, double value)
{
    if (s->n < MOST_SAMPLES)
        s->value[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(const double *sorted, unsigned n, double q)
{
    const double at = q * (double)(n - 1);
    const unsigned below = (unsigned)at;

    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

struct summary samples_summary(const struct samples *s)
{
    struct summary sum = {.n = s->n};
    double sorted[MOST_SAMPLES];

    if (s->n == 0)
        return sum;
    memcpy(sorted, s->value, s->n * sizeof *sorted);
    qsort(sorted, s->n, sizeof *sorted, by_value);
    sum.min = sorted[0];
    sum.max = sorted[s->n - 1];
    sum.median = quantile(sorted, s->n, 0.5);
    sum.q1 = quantile(sorted, s->n, 0.25);
    sum.q3 = quantile(sorted, s->n, 0.75);
    return sum;
}

bool samples_positive(struct samples *s)
{
    double least = 0;
    unsigned none = 0;

    for (unsigned i = 0; i < s->n; i++)
        if (s->value[i] > 0 && (least == 0 || s->value[i] < least))
            least = s->value[i];
    for (unsigned i = 0; i < s->n; i++)
        if (s->value[i] <= 0) {
            s->value[i] = least;
            none++;
        }
    const bool well = none * 2 < s->n;
    s->n = least > 0 ? s->n : 0;
    return well;
}

bool samples_to_rate(struct samples *s, double bytes)
{
    const bool well = samples_positive(s);

    for (unsigned i = 0; i < s->n; i++)
        s->value[i] = bytes * 1e3 / s->value[i];
    return well;
}

uint64_t miba_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
