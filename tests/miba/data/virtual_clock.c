/* A clock for LD_PRELOAD that goes on when it is read: a nanosecond each time. A program that measures by it sees the
 * costs that softhca spends by spinning, whatever else the machine does. Sleeps take as long as they do, and the first
 * ones move the clock by their number in milliseconds: softhca compares two of them to find out whether the processor's
 * counter agrees with the clock, and does not use the counter then, which goes on by itself. */
#define _GNU_SOURCE 1
#include "virtual_clock.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SLEEPS 16u

static atomic_uint_least64_t here, sleeps;
atomic_uint_least64_t *virtual_now = &here;
_Thread_local uint64_t virtual_own;

/* Begins at the kernel's: waits of the C library until a time of this clock end by that one. */
static __attribute__((constructor)) void begin(void)
{
    struct timespec t = {0};

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    atomic_store(&here, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, t);
    const uint64_t ns = virtual_own ? virtual_own++ : atomic_fetch_add(virtual_now, 1);
    t->tv_sec = (time_t)(ns / 1000000000u);
    t->tv_nsec = (long)(ns % 1000000000u);
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    int (*real)(const struct timespec *, struct timespec *) = NULL;

    const uint64_t before = atomic_fetch_add(&sleeps, 1);

    *(void **)(&real) = dlsym(RTLD_NEXT, "nanosleep");
    if (before < FIRST_SLEEPS)
        atomic_fetch_add(virtual_now, 1000000u * (before + 1));
    return real(wanted, left);
}
