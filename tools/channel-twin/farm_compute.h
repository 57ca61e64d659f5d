/* What workers compute. */
#ifndef TWIN_FARM_COMPUTE_H
#define TWIN_FARM_COMPUTE_H

#include <math.h>

#include "support.h"

/* Births at a constant rate, deaths in proportion to the population, by Gillespie's direct method (J. Phys. Chem. 81,
 * 1977); xorshift64* (Vigna 2016). */
struct simulation {
    uint64_t x;
    double now;
    long population, steps;
};

static double uniform(struct simulation *s)
{
    s->x ^= s->x >> 12;
    s->x ^= s->x << 25;
    s->x ^= s->x >> 27;
    return ((double)((s->x * 0x2545f4914f6cdd1du) >> 12) + 0.5) / 4503599627370496.0;
}

static struct simulation simulation_start(long seed)
{
    return (struct simulation){.x = 0x9e3779b97f4a7c15u * ((uint64_t)seed + 1)};
}

/* Goes on to the next sample, 0.1 later, and returns the population there. */
static long simulation_sample(struct simulation *s)
{
    const double births = 100, deaths = 1, step = 0.1;
    double until = step * (double)++s->steps;

    for (;;) {
        double rate = births + deaths * (double)s->population;
        if (s->now > until)
            return s->population;
        s->now += -log(uniform(s)) / rate;
        s->population += uniform(s) * rate < births ? 1 : -1;
    }
}

/* Uses so much processor time. */
static void work_for(double time)
{
    double until = seconds(CLOCK_THREAD_CPUTIME_ID) + time;

    while (seconds(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

#endif
