/* A rank is killed in a collective: coll_death OPERATION COUNT ROUND POLLS. OPERATION is the number of a kind of
 * <strata/coll.h>, on blocks of COUNT elements; rank 1 dies after POLLS rounds of progress in the call of number ROUND.
 * The calls of all others end with its rank and no other, at once when they are made later, and the survivors go on in
 * a communicator of their own, which each says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <strata/coll.h>

enum { VICTIM = 1, MOST_RANKS = 16, MOST_COUNT = 20000 };

static unsigned in[MOST_RANKS * MOST_COUNT], out[MOST_RANKS * MOST_COUNT];
static size_t counts[MOST_RANKS], offsets[MOST_RANKS];

static void add(void *arg, const void *from, void *inout, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)inout)[i] += ((const unsigned *)from)[i];
}

static strata_coll_t make(strata_coll_kind_t kind, size_t count)
{
    strata_coll_t c = STRATA_COLL_INIT(kind);
    for (size_t i = 0; i < MOST_RANKS; i++) {
        counts[i] = count;
        offsets[i] = i * count;
    }
    c.send = kind == STRATA_BCAST ? STRATA_IN_PLACE : in;
    c.recv = out;
    c.count = count;
    c.element = sizeof(unsigned);
    c.reduce = add;
    c.send_counts = c.recv_counts = counts;
    c.send_offsets = c.recv_offsets = offsets;
    return c;
}

/* A call that rank 1 perhaps does not survive: polls < 0: it does. */
static int call(strata_t *s, const strata_coll_t *c, long polls, int *failed)
{
    strata_coll_request_t *req;
    int done = 0, rc = strata_coll_start(strata_world(s), c, &req);
    while (!done && rc == STRATA_OK) {
        if (polls-- == 0)
            kill(getpid(), SIGKILL);
        rc = strata_coll_test(&req, &done, failed);
    }
    return rc;
}

/* The survivors, in a communicator without rank 1. */
static int go_on(strata_t *s)
{
    int world[MOST_RANKS], n = 0, me = 0;
    unsigned one = 1, sum = 0;
    for (int i = 0; i < strata_size(s); i++)
        if (i != VICTIM) {
            me = i == strata_rank(s) ? n : me;
            world[n++] = i;
        }
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 7, .rank = me, .n_ranks = n, .world = world};
    strata_comm_t *comm;
    int rc = strata_comm_create(s, &spec, &comm);
    for (int i = 0; rc == STRATA_OK && i < 20; i++) {
        strata_coll_t c = make(STRATA_ALLREDUCE, 1);
        c.send = &one;
        c.recv = &sum;
        rc = strata_coll(comm, &c);
        if (rc == STRATA_OK && sum != (unsigned)n)
            rc = STRATA_ERR_STATE;
    }
    return rc == STRATA_OK ? strata_comm_free(comm) : rc;
}

int main(int argc, char **argv)
{
    strata_t *s;
    int failed = -1, rc = STRATA_OK;
    if (argc != 5 || strata_init(NULL, &s) != STRATA_OK || strata_size(s) > MOST_RANKS)
        return EXIT_FAILURE;
    int rank = strata_rank(s);
    long round = atol(argv[3]), polls = atol(argv[4]);
    strata_coll_t c = make((strata_coll_kind_t)atoi(argv[1]), (size_t)atol(argv[2]) % (MOST_COUNT + 1));
    strata_coll_t barrier = make(STRATA_BARRIER, 0);
    /* A barrier after each, since a root may be far ahead. */
    for (long i = 0; rc == STRATA_OK; i++) {
        rc = call(s, &c, rank == VICTIM && i == round ? polls : -1, &failed);
        if (rank == VICTIM && i == round)
            kill(getpid(), SIGKILL);
        if (rc == STRATA_OK)
            rc = call(s, &barrier, -1, &failed);
    }
    int first = failed, again = call(s, &c, -1, &failed);
    if (rc != STRATA_ERR_PEER || first != VICTIM || again != STRATA_ERR_PEER || failed != VICTIM) {
        printf("rank %d: %s, failed rank %d, then %s, rank %d\n", rank, strata_strerror(rc), first,
               strata_strerror(again), failed);
        return EXIT_FAILURE;
    }
    rc = go_on(s);
    if (rc != STRATA_OK) {
        printf("rank %d: without rank 1: %s\n", rank, strata_strerror(rc));
        return EXIT_FAILURE;
    }
    printf("rank %d: rank 1 failed, goes on\n", rank);
    return strata_finalize(s) == STRATA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
