/* A connection that one end gives up while the other is away, for tests/openib: `close_unanswered FOLDER [sent]`, three
 * ranks, of which rank 0 keeps one connection (btl_openib_max_connected_peers). Ranks 0 and 1 exchange a message; rank
 * 1 is away, and rank 0 exchanges one with rank 2, for which it asks rank 1 to close. When FOLDER/poll is there rank 1
 * makes progress for a while, with `sent` after it has sent a message; whoever tests lets its connections carry nothing
 * then. When FOLDER/go is there ranks 0 and 1 exchange another one. Each says what it does, and how it ends. */
#include <stdio.h>
#include <string.h>
#include <strata/strata.h>
#include <time.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

static strata_t *s;
static strata_comm_t *world;

static void say(const char *what)
{
    fprintf(stderr, "rank %d, process %d, %s\n", strata_rank(s), (int)getpid(), what);
}

static bool there(const char *folder, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void poll_for(double seconds)
{
    struct timespec now, end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)seconds;
    do {
        for (int i = 0; i < 1000; i++)
            CHECK(strata_progress(s) >= 0);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static int exchange(int peer, int value)
{
    int got = -1, rc;
    strata_request_t *r;

    rc = strata_irecv(world, &got, sizeof got, peer, value, &r);
    if (rc == STRATA_OK)
        rc = strata_send(world, &value, sizeof value, peer, value);
    if (rc == STRATA_OK)
        rc = strata_wait(&r, STRATA_STATUS_IGNORE);
    CHECK(rc != STRATA_OK || got == value);
    return rc;
}

static void away(const char *folder, bool send, strata_request_t **early)
{
    static const int value = 7;

    say("is away");
    while (!there(folder, "poll"))
        (void)usleep(10000);
    if (send)
        CHECK_OK(strata_isend(world, &value, sizeof value, 0, value, early));
    poll_for(2);
    say("has polled");
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    bool send = argc > 2 && !strcmp(argv[2], "sent");
    strata_request_t *early = NULL;
    int rank, value = -1, rc = STRATA_OK;

    CHECK(argc > 1);
    CHECK_OK(strata_init(NULL, &s));
    world = strata_world(s);
    rank = strata_rank(s);
    CHECK_EQ(strata_size(s), 3);
    if (rank < 2)
        CHECK_OK(exchange(1 - rank, 1));
    if (rank != 1)
        CHECK_OK(exchange(2 - rank, 2));
    if (rank == 0)
        say("has asked");
    if (rank == 1)
        away(argv[1], send, &early);
    while (!there(argv[1], "go"))
        poll_for(0);
    if (rank == 0 && send)
        rc = strata_recv(world, &value, sizeof value, 1, 7, STRATA_STATUS_IGNORE);
    CHECK(rc != STRATA_OK || value == (send && rank == 0 ? 7 : -1));
    if (rank < 2 && rc == STRATA_OK)
        rc = exchange(1 - rank, 3);
    if (early && rc == STRATA_OK)
        rc = strata_wait(&early, STRATA_STATUS_IGNORE);
    printf("rank %d: %s\n", rank, strata_strerror(rc));
    fflush(stdout);
    (void)strata_finalize(s);
    watchdog_stop(dog);
    return rc == STRATA_OK ? 0 : 1;
}
