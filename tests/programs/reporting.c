/* Ranks that strata-run asks for reports: `reporting MODE FILE`, until FILE exists. Rank 0 prints "ready" once all
 * ranks are under way.
 * - wait: rank 0 calls nothing of Strata's, all others wait in Strata for a message of its
 * - busy: ranks 0 and 1 send to each other without a pause, and never wait for long
 * - threads: as wait, at STRATA_THREAD_MULTIPLE */
#include <time.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { READY = 1, DATA = 2, END = 3, MANY = 1000 };

static strata_comm_t *world;
static int rank, n;

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void wait_outside(const char *file)
{
    while (!exists(file))
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    for (int r = 1; r < n; r++)
        suite_signal(world, r, END);
}

static void ping_pong(const char *file)
{
    char go = 1;
    while (go) {
        for (int i = 0; i < MANY; i++) {
            char b[8] = {0};
            if (rank == 0)
                CHECK_OK(strata_send(world, b, sizeof b, 1, DATA));
            CHECK_OK(strata_recv(world, b, sizeof b, !rank, DATA, NULL));
            if (rank == 1)
                CHECK_OK(strata_send(world, b, sizeof b, 0, DATA));
        }
        go = rank == 0 ? !exists(file) : 0;
        if (rank == 0)
            CHECK_OK(strata_send(world, &go, 1, 1, END));
        else
            CHECK_OK(strata_recv(world, &go, 1, 0, END, NULL));
    }
}

int main(int argc, char **argv)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_t *s;

    CHECK(argc == 3);
    bool busy = strcmp(argv[1], "busy") == 0;
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    config.thread_level = strcmp(argv[1], "threads") == 0 ? STRATA_THREAD_MULTIPLE : STRATA_THREAD_SINGLE;
    CHECK_OK(strata_init(&config, &s));
    world = strata_world(s);
    rank = strata_rank(s);
    n = strata_size(s);
    watchdog_name_thread(rank);
    for (int r = 1; r < n && rank == 0; r++)
        suite_await(world, r, READY);
    if (rank)
        suite_signal(world, 0, READY);
    if (rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    if (busy)
        ping_pong(argv[2]);
    else if (rank == 0)
        wait_outside(argv[2]);
    else
        suite_await(world, 0, END);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
