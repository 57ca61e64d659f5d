/* The one clock of Strata: monotonic, the same for all processes of a machine. */
#ifndef STRATA_SDK_CLOCK_H
#define STRATA_SDK_CLOCK_H

#include <stdint.h>
#include <time.h>
#include <strata/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* st_now_ns for a translation unit in which <time.h> hides clock_gettime: -std=c11 without _POSIX_C_SOURCE. */
STRATA_API uint64_t st_clock_ns(void);

/* Nanoseconds since some moment in the past (clock_gettime(2), CLOCK_MONOTONIC). */
static inline uint64_t st_now_ns(void)
{
#ifdef CLOCK_MONOTONIC
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#else
    return st_clock_ns();
#endif
}

/* The same in milliseconds. */
static inline int64_t st_now_ms(void)
{
    return (int64_t)(st_now_ns() / 1000000u);
}

#ifdef __cplusplus
}
#endif
#endif
