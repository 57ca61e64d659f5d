/* A receiver with a ring of eager RDMA that nobody writes to: rank 0 sends numbered messages, is quiet for PAUSES
 * pauses of 10 ms, in which it makes progress, and sends again, three times over. `eager_sleep PAUSES`. Rank 1 waits
 * meanwhile, and prints how often it has gone to sleep for one pause, the most of the three times. */
#include <sys/resource.h>
#include <time.h>
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

int main(int argc, char **argv)
{
    const int pauses = argc > 1 ? atoi(argv[1]) : 0;
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];
    strata_t *s;
    int number = 0;
    long most = 0;

    CHECK(pauses > 0);
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    CHECK_EQ(strata_size(s), 2);
    for (int i = 0; i < TIMES; i++) {
        if (strata_rank(s) == 0) {
            send_numbers(strata_world(s), &number, MESSAGES);
            for (int k = 0; k < pauses; k++) {
                nanosleep(&(struct timespec){0, 10000000}, NULL);
                (void)strata_progress(s);
            }
            send_numbers(strata_world(s), &number, 1);
        } else {
            long before;
            receive_numbers(strata_world(s), &number, MESSAGES);
            before = sleeps();
            receive_numbers(strata_world(s), &number, 1);
            if (sleeps() - before > most)
                most = sleeps() - before;
        }
    }
    if (strata_rank(s) == 1) { /* a rank that has sent nothing reports no transports */
        CHECK_OK(strata_send(strata_world(s), NULL, 0, 0, TAG));
        printf("%.1f sleeps a pause\n", (double)most / pauses);
    } else {
        CHECK_OK(strata_recv(strata_world(s), NULL, 0, 1, TAG, NULL));
    }
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
