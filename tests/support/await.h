/* Waiting for an event in a test that libcheck runs. A test asks whether the event comes, never how soon: the limit is
 * a safety net for one that would hang, and no correct run comes near it, however busy the machine is. */
#ifndef TESTS_SUPPORT_AWAIT_H
#define TESTS_SUPPORT_AWAIT_H

#include <check.h>
#include <time.h>

#define AWAIT_LIMIT_S 240

#define AWAIT_SPINS 2000u

/* Runs `step` until `event` is true. One that has not come after AWAIT_SPINS turns waits for a clock or for another
 * process, which is left the processor. */
#define AWAIT(event, step)                                                                                             \
    do {                                                                                                               \
        time_t await_end_ = time(NULL) + AWAIT_LIMIT_S;                                                                \
        for (unsigned await_i_ = 1; !(event); await_i_++) {                                                            \
            step;                                                                                                      \
            if (await_i_ > AWAIT_SPINS)                                                                                \
                nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);                                                \
            if (await_i_ % 128 == 0)                                                                                   \
                ck_assert_msg(time(NULL) < await_end_, "this never came: %s", #event);                                 \
        }                                                                                                              \
    } while (0)

#endif
