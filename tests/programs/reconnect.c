/* Connections that come and go: `reconnect ROUNDS [oneway [FILE]|favourite]`. In each round rank 0 exchanges one
 * message with every other rank in turn; with fewer connections kept than there are ranks
 * (btl_openib_max_connected_peers) every exchange connects anew. With `favourite` rank 0 exchanges one with rank 1
 * before each with another. With `oneway` rank 0 sends, with a pause before each round, and the others never answer;
 * FILE ends it, if that is before ROUNDS. Data is checked. Each rank says what its transport btl_openib held at the
 * end, and how much more there is of all that it allocated and of descriptors than after a tenth of the rounds. */
#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/strata.h>
#include <time.h>
#include <unistd.h>

static int exchange(strata_t *s, int peer, long round)
{
    strata_comm_t *world = strata_world(s);
    long out = 1000 * round + strata_rank(s), in = -1;
    int rc = STRATA_OK;

    if (strata_rank(s) == 0)
        rc = strata_send(world, &out, sizeof out, peer, 1);
    if (rc == STRATA_OK)
        rc = strata_recv(world, &in, sizeof in, peer, 1, STRATA_STATUS_IGNORE);
    if (rc == STRATA_OK && in != 1000 * round + peer) {
        fprintf(stderr, "round %ld: %ld came from rank %d\n", round, in, peer);
        return STRATA_ERR_SYSTEM;
    }
    if (rc == STRATA_OK && strata_rank(s) != 0)
        rc = strata_send(world, &out, sizeof out, peer, 1);
    return rc;
}

/* What was said by a socket goes out when progress is called. */
static void pause_and_poll(strata_t *s)
{
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 1000; k++)
            (void)strata_progress(s);
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* The last message has the number -1. */
static int one_way(strata_t *s, long rounds, const char *until)
{
    long value = 0;
    int rc = STRATA_OK;

    for (long round = 0; value >= 0 && rc == STRATA_OK; round++) {
        if (strata_rank(s) == 0) {
            pause_and_poll(s);
            value = round + 1 >= rounds || (until && access(until, F_OK) == 0) ? -1 : round;
            for (int peer = 1; peer < strata_size(s) && rc == STRATA_OK; peer++)
                rc = strata_send(strata_world(s), &value, sizeof value, peer, 1);
        } else {
            rc = strata_recv(strata_world(s), &value, sizeof value, 0, 1, STRATA_STATUS_IGNORE);
            if (rc == STRATA_OK && value >= 0 && value != round)
                rc = STRATA_ERR_SYSTEM;
        }
    }
    return rc;
}

static void add_held(void *arg, const strata_mem_line_t *line)
{
    if (!line->user && strcmp(line->component, "btl_openib") == 0)
        *(size_t *)arg += line->bytes;
}

struct having {
    long held, allocated, descriptors;
};

static struct having have(strata_t *s)
{
    struct mallinfo2 m = mallinfo2();
    struct having h = {.allocated = (long)(m.uordblks + m.hblkhd)};
    size_t held = 0;
    DIR *d = opendir("/proc/self/fd");

    while (d && readdir(d))
        h.descriptors++;
    if (d)
        closedir(d);
    (void)strata_mem_report(s, add_held, &held);
    h.held = (long)held;
    return h;
}

static int in_turn(strata_t *s, long rounds, bool favourite, struct having *before)
{
    int rc = STRATA_OK, rank = strata_rank(s), n = strata_size(s);

    for (long round = 0; round < rounds && rc == STRATA_OK; round++) {
        if (round == rounds / 10)
            *before = have(s);
        for (int peer = 1; peer < n && rc == STRATA_OK; peer++) {
            if (favourite && peer > 1 && rank < 2)
                rc = exchange(s, 1 - rank, round);
            if (rc == STRATA_OK && (rank == 0 || rank == peer))
                rc = exchange(s, rank == 0 ? peer : 0, round);
        }
    }
    return rc;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    struct having before = {0}, after;
    strata_t *s;
    int rc = strata_init(NULL, &s);

    if (rc != STRATA_OK)
        return 1;
    if (argc > 2 && strcmp(argv[2], "oneway") == 0) {
        rc = one_way(s, rounds, argc > 3 ? argv[3] : NULL);
        rounds = 0;
    } else {
        rc = in_turn(s, rounds, argc > 2 && strcmp(argv[2], "favourite") == 0, &before);
    }
    if (rc != STRATA_OK)
        fprintf(stderr, "rank %d: %s\n", strata_rank(s), strata_strerror(rc));
    else if (strata_rank(s) == 0)
        printf("%ld exchanges\n", rounds * (strata_size(s) - 1));
    after = have(s);
    if (rc == STRATA_OK)
        printf("rank %d holds %ld kB\nrank %d grew by %ld bytes of its own, %ld allocated, %ld descriptors\n",
               strata_rank(s), after.held / 1024, strata_rank(s), after.held - before.held,
               after.allocated - before.allocated, after.descriptors - before.descriptors);
    return strata_finalize(s) == STRATA_OK && rc == STRATA_OK ? 0 : 1;
}
