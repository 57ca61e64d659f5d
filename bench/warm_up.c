/* The first messages of a size, timed beside later ones: ranks 0 and 1 of a job that has just begun connect by a
 * message without data, exchange FIRST messages of one size, then go on until LATER. One size a job, since the memory
 * that one has touched serves the next.
 *
 *   warm_up BYTES     prints "BYTES FIRST_US LATER_US": means of one way, us; of LATER the median of batches of FIRST
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/strata.h>
#include "median.h"

enum { FIRST = 100, BATCHES = 41, TAG = 1 };

static void check(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "warm_up: %s: %s\n", what, strata_strerror(rc));
    exit(1);
}

/* The mean of one way. */
static double exchange(strata_comm_t *world, int rank, char *buffer, size_t bytes)
{
    uint64_t begin = st_now_ns();

    for (int i = 0; i < FIRST; i++) {
        if (rank == 0)
            check(strata_send(world, buffer, bytes, 1, TAG), "send");
        check(strata_recv(world, buffer, bytes, !rank, TAG, NULL), "receive");
        if (rank == 1)
            check(strata_send(world, buffer, bytes, 0, TAG), "send");
    }
    return (double)(st_now_ns() - begin) / (2e3 * FIRST);
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    double first, later[BATCHES];
    strata_t *s;
    char *buffer;
    int rank;

    if (bytes == 0) {
        fprintf(stderr, "usage: warm_up BYTES\n");
        return 2;
    }
    check(strata_init(NULL, &s), "init");
    rank = strata_rank(s);
    buffer = malloc(bytes);
    if (!buffer || strata_size(s) != 2) {
        fprintf(stderr, "warm_up: two ranks, and memory for a message\n");
        return 1;
    }
    memset(buffer, rank, bytes); /* the pages of the user's memory are no part of it */
    for (int turn = 0; turn < 2; turn++)
        check(rank == turn ? strata_send(strata_world(s), NULL, 0, !rank, TAG)
                           : strata_recv(strata_world(s), NULL, 0, !rank, TAG, NULL),
              "connecting");
    first = exchange(strata_world(s), rank, buffer, bytes);
    for (int b = 0; b < BATCHES; b++)
        later[b] = exchange(strata_world(s), rank, buffer, bytes);
    if (rank == 0)
        printf("%zu %.4f %.4f\n", bytes, first, median(later, BATCHES));
    free(buffer);
    check(strata_finalize(s), "finalize");
    return 0;
}
