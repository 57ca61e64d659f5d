/* Channels from rank 0 to rank 1 while the link between them goes down and up, for tests/cluster: `channel_resume
 * MESSAGES PAUSE-US`. Each message is checked; after a channel that broke the next one goes on. Rank 1 prints "all
 * MESSAGES by N channels". */
#include <time.h>
#include "support/channel_resume.h"
#include "support/watchdog.h"

static long pause_us;

static void paced(uint32_t n)
{
    (void)n;
    nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    strata_t *s;
    CHECK_MSG(argc == 3, "usage: channel_resume MESSAGES PAUSE-US");
    uint32_t all = (uint32_t)strtoul(argv[1], NULL, 10);
    pause_us = strtol(argv[2], NULL, 10);
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
