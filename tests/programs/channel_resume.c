/* Channels from rank 0 to rank 1 while the link between them goes down and up, for tests/cluster and tests/openib:
 * `channel_resume MESSAGES PAUSE-US [FILE]`. Each message is checked; after a channel that broke the next one goes on.
 * Rank 1 prints "all MESSAGES by N channels". With FILE rank 0 prints "half" when half of the messages are sent, waits
 * until there is a file of that name, and prints "goes on" behind the next message. */
#include <time.h>
#include <unistd.h>
#include "support/channel_resume.h"
#include "support/watchdog.h"

static long pause_us;
static uint32_t half;    /* of the messages */
static const char *file; /* that ends the pause; NULL: there is none */

static void say(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}
static void paced(uint32_t n)
{
    static bool waited, went_on;
    nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
    if (waited && !went_on) {
        went_on = true;
        say("goes on");
    }
    if (!file || n < half || waited)
        return;
    say("half");
    while (access(file, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    waited = true;
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    strata_t *s;
    CHECK_MSG(argc == 3 || argc == 4, "usage: channel_resume MESSAGES PAUSE-US [FILE]");
    uint32_t all = (uint32_t)strtoul(argv[1], NULL, 10);
    pause_us = strtol(argv[2], NULL, 10);
    half = all / 2;
    file = argv[3];
    CHECK_OK(strata_init(NULL, &s));
    CHECK_EQ(strata_size(s), 2);
    if (strata_rank(s) == 0)
        resume_out(s, strata_world(s), 1, all, paced);
    else
        printf("all %u by %u channels\n", all, resume_in(s, strata_world(s), 0, all));
    fflush(stdout);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
