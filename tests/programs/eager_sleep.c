/* A receiver with a ring of eager RDMA that nobody writes to: rank 0 sends numbered messages, and when they have been
 * received is quiet for PAUSES pauses of 10 ms, in which it makes progress, and sends one more: three times, and on
 * until REVOKED rings have been revoked. `eager_sleep PAUSES REVOKED`. Rank 1 waits meanwhile, and prints how often it
 * has gone to sleep in 10 ms, the most of all times. */
#include <sys/resource.h>
#include <time.h>
#include "support/counters.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { MESSAGES = 200, TIMES = 3, TAG = 4 };

static long sleeps(void)
{
    struct rusage u;

    CHECK(getrusage(RUSAGE_SELF, &u) == 0);
    return u.ru_nvcsw;
}

static void send_numbers(strata_comm_t *world, int *number, int n)
{
    for (int end = *number + n; *number < end; ++*number)
        CHECK_OK(strata_send(world, number, sizeof *number, 1, TAG));
}

static void receive_numbers(strata_comm_t *world, int *number, int n)
{
    for (int end = *number + n; *number < end; ++*number) {
        int got = -1;
        CHECK_OK(strata_recv(world, &got, sizeof got, 0, TAG, NULL));
        CHECK_MSG(got == *number, "message %d where %d was due", got, *number);
    }
}

/* Rank 0 sends, is quiet, sends. */
static void send_once(strata_t *s, int *number, int pauses)
{
    send_numbers(strata_world(s), number, MESSAGES);
    CHECK_OK(strata_recv(strata_world(s), NULL, 0, 1, TAG, NULL));
    for (int k = 0; k < pauses; k++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        (void)strata_progress(s);
    }
    send_numbers(strata_world(s), number, 1);
}

/* How often rank 1 slept in 10 ms while rank 0 was quiet, which on a busy machine is longer than what rank 0 asked for.
 */
static double receive_once(strata_t *s, int *number)
{
    struct timespec from, to;
    long before;

    receive_numbers(strata_world(s), number, MESSAGES);
    CHECK_OK(strata_send(strata_world(s), NULL, 0, 0, TAG));
    before = sleeps();
    clock_gettime(CLOCK_MONOTONIC, &from);
    receive_numbers(strata_world(s), number, 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(sleeps() - before) /
           ((double)(to.tv_sec - from.tv_sec) * 100 + (double)(to.tv_nsec - from.tv_nsec) / 1e7);
}

/* Whether it is to be done again, as rank 1 says. */
static bool again(strata_t *s, int times, uint64_t revoked)
{
    int more;

    if (strata_rank(s) == 0) {
        CHECK_OK(strata_recv(strata_world(s), &more, sizeof more, 1, TAG, NULL));
        return more;
    }
    more = times < TIMES || counted(s, "btl", "openib", "rings_revoked") < revoked;
    CHECK_OK(strata_send(strata_world(s), &more, sizeof more, 0, TAG));
    return more;
}

int main(int argc, char **argv)
{
    const int pauses = argc > 2 ? atoi(argv[1]) : 0, revoked = argc > 2 ? atoi(argv[2]) : 0;
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];
    strata_t *s;
    int number = 0, times = 0;
    double most = 0;

    CHECK(pauses > 0 && revoked >= 0);
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    CHECK_EQ(strata_size(s), 2);
    do {
        if (strata_rank(s) == 0) {
            send_once(s, &number, pauses);
        } else {
            double slept = receive_once(s, &number);
            most = slept > most ? slept : most;
        }
    } while (again(s, ++times, (uint64_t)revoked));
    if (strata_rank(s) == 1)
        printf("%.1f sleeps in 10 ms\n", most);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
