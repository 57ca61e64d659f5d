/* For LD_PRELOAD: who gives the processor away sleeps for a moment. On a busy machine a process that polls and calls
 * sched_yield(2) comes back when a whole time slice of somebody else's is over, 4 ms and more for each message; one
 * that slept is let in when it wakes. */
#include <sched.h>
#include <time.h>

__attribute__((visibility("default"))) int sched_yield(void)
{
    return nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
}
