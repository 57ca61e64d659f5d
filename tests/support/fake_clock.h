/* A clock that stands still until the test moves it, in place of the C library's. Included by one file of a program. */
#ifndef TEST_SUPPORT_FAKE_CLOCK_H
#define TEST_SUPPORT_FAKE_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t fake_ns; /* what every clock says; 0: what the kernel says */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (fake_ns == 0)
        return (int)syscall(SYS_clock_gettime, clock, t);
    *t = (struct timespec){.tv_sec = (time_t)(fake_ns / 1000000000u), .tv_nsec = (long)(fake_ns % 1000000000u)};
    return 0;
}

#endif
