/* A rank is killed in a collective: coll_death OPERATION[:ROOT] COUNT ROUND WHEN [inter]. OPERATION is the number of a
 * kind of <strata/coll.h>, ROOT (0) that of a rank, on blocks of COUNT elements; rank 1 dies in the call of number
 * ROUND: after WHEN rounds of progress, or when the counter coll_arrival_WHEN grows, or that of coll_sm where WHEN
 * begins with "sm_", or WHEN is "away": before it starts, while others are in the call; or "bystander": as with
 * "adverts", and rank 2 does not make that call at all. The calls of all others end with its rank and no other, at once
 * when they are made later; they free the communicator, and go on in one of their own, which each says. "inter":
 * between two groups, ranks 0 and 1 and the others; rank 1 is the root. Each says when, by the machine's clock: rank 1
 * before it dies, the others when their call has ended. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <strata/coll.h>
#include "support/counters.h"

enum {
    VICTIM = 1,
    BYSTANDER = 2,
    FIRST_GROUP = 2 /* ranks of the first group, with "inter" */,
    MOST_RANKS = 16,
    MOST_COUNT = 20000
};

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

/* An intercommunicator of ranks 0 and 1 and of the others. */
static int make_inter(strata_t *s, strata_comm_t **comm)
{
    int world[MOST_RANKS], rank = strata_rank(s), rest = strata_size(s) - FIRST_GROUP, mine = rank >= FIRST_GROUP;
    for (int i = 0; i < strata_size(s); i++)
        world[i] = i;
    strata_comm_spec_t spec = {.size = sizeof(spec),
                               .id = 5,
                               .rank = mine ? rank - FIRST_GROUP : rank,
                               .n_ranks = mine ? FIRST_GROUP : rest,
                               .world = mine ? world : world + FIRST_GROUP,
                               .inter = 1,
                               .n_local = mine ? rest : FIRST_GROUP,
                               .local = mine ? world + FIRST_GROUP : world};
    return strata_comm_create(s, &spec, comm);
}

static strata_coll_t make_between(strata_t *s, strata_coll_kind_t kind, size_t count)
{
    int rank = strata_rank(s), rest = strata_size(s) - FIRST_GROUP;
    if (kind == STRATA_REDUCE_SCATTER_BLOCK) /* members of both groups give as much */
        count = (count / MOST_RANKS) * (size_t)(rank < FIRST_GROUP ? rest : FIRST_GROUP);
    strata_coll_t c = make(kind, count);
    c.root = rank == VICTIM ? STRATA_ROOT : rank < FIRST_GROUP ? STRATA_PROC_NULL : VICTIM;
    return c;
}

/* Job rank of the member with a number of an intercommunicator (strata_coll_wait). */
static int job_rank(strata_comm_t *comm, int number)
{
    int rest = strata_size(strata_comm_context(comm)) - FIRST_GROUP, size = strata_comm_size(comm);
    if (strata_rank(strata_comm_context(comm)) >= FIRST_GROUP || number < 0)
        return number; /* the other group is the first one */
    return number < size ? FIRST_GROUP + number : number - rest;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

_Noreturn static void die(void)
{
    printf("rank %d: dies at %.6f\n", VICTIM, now());
    fflush(stdout);
    for (;;)
        kill(getpid(), SIGKILL);
}

/* When rank 1 dies. */
struct death {
    const char *counter; /* when it grows, or NULL */
    uint64_t value;
    long polls; /* after so many, if not negative */
};

/* The counter WHEN of coll_arrival, or what follows sm_ of coll_sm. */
static uint64_t counter(strata_t *s, const char *when)
{
    bool sm = strncmp(when, "sm_", 3) == 0;
    return counted(s, "coll", sm ? "sm" : "arrival", sm ? when + 3 : when);
}

/* Gives others the time to come as far as they can without this rank, and takes what they send. */
static void wait_for_others(strata_t *s)
{
    for (int i = 0; i < 50; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        (void)strata_progress(s);
    }
}

static void maybe_die(strata_t *s, struct death *d)
{
    if (d->polls == 0 || (d->counter && counter(s, d->counter) > d->value))
        die();
    if (d->polls > 0)
        d->polls--;
}

/* A call that rank 1 does not survive if there is a `death`. *failed: rank of the job. */
static int call(strata_t *s, strata_comm_t *comm, const strata_coll_t *c, struct death *death, int *failed)
{
    strata_coll_request_t *req;
    int done = 0, rc;
    if (death && death->counter)
        death->value = counter(s, death->counter);
    rc = strata_coll_start(comm, c, &req);
    while (!done && rc == STRATA_OK) {
        if (death)
            maybe_die(s, death);
        rc = strata_coll_test(&req, &done, failed);
    }
    if (death && death->counter)
        maybe_die(s, death);
    if (comm != strata_world(s) && strata_comm_size(comm) != strata_size(s) && failed)
        *failed = job_rank(comm, *failed);
    return rc;
}

/* Rank 1 in the call that it dies in. */
static int last_call(strata_t *s, strata_comm_t *comm, const strata_coll_t *c, const char *when)
{
    struct death death = {.polls = -1};
    int failed;
    bool bystander = strcmp(when, "bystander") == 0;
    if (strcmp(when, "away") == 0) {
        wait_for_others(s);
        die();
    }
    if (*when >= '0' && *when <= '9') {
        death.polls = atol(when);
    } else {
        death.counter = bystander ? "adverts" : when;
        wait_for_others(s);
    }
    int rc = call(s, comm, c, &death, &failed);
    if (!death.counter)
        die();
    printf("rank %d: the call ended before %s: %s, %lu\n", VICTIM, when, strata_strerror(rc),
           (unsigned long)death.value);
    return EXIT_FAILURE;
}

/* The survivors wait for each other, by messages: a collective of the world would fail. */
static int meet(strata_t *s)
{
    int rc = STRATA_OK, rank = strata_rank(s), sent[MOST_RANKS] = {0}, got;
    strata_request_t *reqs[MOST_RANKS];
    size_t n = 0;
    for (int i = 0; rc == STRATA_OK && i < strata_size(s); i++)
        if (i != VICTIM && i != rank)
            rc = strata_isend(strata_world(s), &sent[i], sizeof(sent[i]), i, 3, &reqs[n++]);
    for (int i = 0; rc == STRATA_OK && i < strata_size(s); i++)
        if (i != VICTIM && i != rank)
            rc = strata_recv(strata_world(s), &got, sizeof(got), i, 3, NULL);
    return rc == STRATA_OK ? strata_waitall(n, reqs, NULL) : rc;
}

/* The survivors, in a communicator without rank 1, which has the id of the one that failed. The first of them begins
 * while the others have created it and do nothing yet. */
static int go_on(strata_t *s)
{
    int world[MOST_RANKS], n = 0, me = 0;
    unsigned one = 1, sum = 0;
    for (int i = 0; i < strata_size(s); i++)
        if (i != VICTIM) {
            me = i == strata_rank(s) ? n : me;
            world[n++] = i;
        }
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 5, .rank = me, .n_ranks = n, .world = world};
    strata_comm_t *comm;
    int rc = meet(s); /* all have freed it */
    if (rc == STRATA_OK)
        rc = strata_comm_create(s, &spec, &comm);
    if (rc == STRATA_OK)
        rc = meet(s);
    if (rc == STRATA_OK && me > 0)
        wait_for_others(s);
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

/* Calls until rank 1 has failed, with a barrier of the world after each, since a root may be far ahead. Either ends
 * with rank 1, at once when it is made again. */
static int calls(strata_t *s, strata_comm_t *comm, const strata_coll_t *c, char **argv)
{
    strata_coll_t barrier = STRATA_COLL_INIT(STRATA_BARRIER); /* counts of make() are those of `c` */
    long round = atol(argv[3]);
    int rank = strata_rank(s), rc = STRATA_OK, failed = -1, first, again, in_barrier = 0;
    bool bystander = rank == BYSTANDER && strcmp(argv[4], "bystander") == 0;
    for (long i = 0; rc == STRATA_OK; i++) {
        if (i == round && rank == VICTIM)
            exit(last_call(s, comm, c, argv[4]));
        if (i != round || !bystander)
            rc = call(s, comm, c, NULL, &failed);
        in_barrier = rc == STRATA_OK;
        if (in_barrier)
            rc = call(s, strata_world(s), &barrier, NULL, &failed);
    }
    printf("rank %d: the call ended at %.6f\n", rank, now());
    first = failed;
    again = in_barrier ? call(s, strata_world(s), &barrier, NULL, &failed) : call(s, comm, c, NULL, &failed);
    if (rc == STRATA_ERR_PEER && first == VICTIM && again == STRATA_ERR_PEER && failed == VICTIM) {
        /* The failure may not have come to the other communicator yet. */
        do
            rc = bystander ? STRATA_ERR_PEER : call(s, comm, c, NULL, &failed);
        while (rc == STRATA_OK);
    }
    if (rc != STRATA_ERR_PEER || first != VICTIM || again != STRATA_ERR_PEER || failed != VICTIM) {
        printf("rank %d: %s, failed rank %d, then %s, rank %d\n", rank, strata_strerror(rc), first,
               strata_strerror(again), failed);
        return STRATA_ERR_STATE;
    }
    return STRATA_OK;
}

int main(int argc, char **argv)
{
    strata_t *s;
    strata_comm_t *comm;
    bool inter = argc == 6 && strcmp(argv[5], "inter") == 0;
    if ((argc != 5 && !inter) || strata_init(NULL, &s) != STRATA_OK || strata_size(s) > MOST_RANKS)
        return EXIT_FAILURE;
    int rank = strata_rank(s);
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 5, .rank = rank, .n_ranks = strata_size(s)};
    if ((inter ? make_inter(s, &comm) : strata_comm_create(s, &spec, &comm)) != STRATA_OK)
        return EXIT_FAILURE;
    strata_coll_kind_t kind = (strata_coll_kind_t)atoi(argv[1]);
    size_t count = (size_t)atol(argv[2]) % (MOST_COUNT + 1);
    strata_coll_t c = inter ? make_between(s, kind, count) : make(kind, count);
    const char *root = strchr(argv[1], ':');
    if (root)
        c.root = atoi(root + 1);
    int rc = calls(s, comm, &c, argv);
    if (rc != STRATA_OK)
        return EXIT_FAILURE;
    rc = strata_comm_free(comm);
    if (rc == STRATA_OK)
        rc = go_on(s);
    if (rc != STRATA_OK) {
        printf("rank %d: without rank 1: %s\n", rank, strata_strerror(rc));
        return EXIT_FAILURE;
    }
    printf("rank %d: rank 1 failed, goes on\n", rank);
    return strata_finalize(s) == STRATA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
