/* Lets the thread or process run that a test waits for. */
#ifndef TESTS_SUPPORT_LET_RUN_H
#define TESTS_SUPPORT_LET_RUN_H

#include <sched.h>
#include <time.h>

/* On a busy machine a thread that yields waits until everybody else had a turn, tens of milliseconds; one that sleeps
 * is preferred when it wakes. So after a yield that took long the next waits sleep. How long they take decides nothing.
 */
static inline void let_run(void)
{
    static _Thread_local int sleeps;
    struct timespec before, after;
    if (sleeps > 0) {
        sleeps--;
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &before);
    sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &after);
    if ((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec > 1000000)
        sleeps = 1000;
}

#endif
