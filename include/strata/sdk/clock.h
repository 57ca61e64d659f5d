/* The one clock of Strata: monotonic, the same for all processes of a machine. */
#ifndef STRATA_SDK_CLOCK_H
#define STRATA_SDK_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment in the past (clock_gettime(2), CLOCK_MONOTONIC). */
static inline uint64_t st_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same in milliseconds. */
static inline int64_t st_now_ms(void)
{
    return (int64_t)(st_now_ns() / 1000000u);
}

#endif
