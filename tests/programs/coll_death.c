/* A rank is killed between and within collectives: coll_death OPERATION, the number of a kind of <strata/coll.h>. The
 * others' calls end with the failed rank's number, and each says that it goes on. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <strata/coll.h>

enum { VICTIM = 1, COUNT = 5000, ROUNDS = 40 };

static void add(void *arg, const void *in, void *inout, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)inout)[i] += ((const unsigned *)in)[i];
}

int main(int argc, char **argv)
{
    static unsigned in[64 * COUNT], out[64 * COUNT];
    strata_t *s;
    int failed = -1, rc = STRATA_OK, rank, done = 0;
    if (argc != 2 || strata_init(NULL, &s) != STRATA_OK || strata_size(s) > 64)
        return EXIT_FAILURE;
    strata_coll_t c = STRATA_COLL_INIT((strata_coll_kind_t)atoi(argv[1]));
    rank = strata_rank(s);
    c.send = c.kind == STRATA_BCAST ? STRATA_IN_PLACE : in;
    c.recv = out;
    c.count = COUNT;
    c.element = sizeof(unsigned);
    c.reduce = add;
    /* A barrier after each, since a root may be far ahead. */
    for (int i = 0; rc == STRATA_OK && i < 10 * ROUNDS; i++) {
        strata_coll_request_t *req = NULL;
        rc = strata_coll_start(strata_world(s), &c, &req);
        if (rc != STRATA_OK)
            break;
        if (rank == VICTIM && i == ROUNDS) {
            (void)strata_progress(s);
            kill(getpid(), SIGKILL);
        }
        while (!done && rc == STRATA_OK)
            rc = strata_coll_test(&req, &done, &failed);
        done = 0;
        if (rc == STRATA_OK) {
            strata_coll_t barrier = STRATA_COLL_INIT(STRATA_BARRIER);
            rc = strata_coll_start(strata_world(s), &barrier, &req);
            if (rc == STRATA_OK)
                rc = strata_coll_wait(&req, &failed);
        }
    }
    if (rc != STRATA_ERR_PEER || failed != VICTIM) {
        printf("rank %d: %s, failed rank %d\n", rank, strata_strerror(rc), failed);
        return EXIT_FAILURE;
    }
    printf("rank %d: rank %d failed, goes on\n", rank, failed);
    for (int i = 0; i < 300; i++) { /* the others are not to lose this rank, too */
        (void)strata_progress(s);
        usleep(1000);
    }
    return EXIT_SUCCESS;
}
