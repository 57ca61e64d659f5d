/* One of three ranks kills itself, for tests/openib and tests/integration: `peer_death WHEN`, under strata-run
 * --keep-going or mpirun --enable-recovery. Whatever the others have under way with it ends with its data or with
 * STRATA_ERR_PEER, and they go on talking to each other; each prints "rank R was told after N ms", since its first
 * message to the dead one or, with `heard`, since it began to wait, and "rank R goes on". WHEN:
 * - before: nothing was ever sent to it or by it
 * - connecting: it has begun to send to both, and they to it
 * - heard: it has sent a short message to both, and nobody has sent to it
 * - connected: short messages went both ways
 * - sending, receiving: in the middle of long messages that it sends, or receives */
#include <signal.h>
#include <time.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { VICTIM = 1, LONG = 16 << 20, BOUND_S = 900 };

static strata_t *s;
static strata_comm_t *world;
static int rank;

static void die(void)
{
    raise(SIGKILL);
}

/* Both ends of what is under way; status of the request. */
static int ends(strata_request_t **q)
{
    time_t end = time(NULL) + BOUND_S;
    int done = 0, rc = STRATA_OK;

    while (!done) {
        rc = strata_test(q, &done, NULL);
        CHECK_MSG(time(NULL) < end, "rank %d: a request with a dead peer does not end", rank);
    }
    CHECK_MSG(rc == STRATA_OK || rc == STRATA_ERR_PEER, "rank %d: %s", rank, strata_strerror(rc));
    return rc;
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void talk(int peer)
{
    suite_signal(world, peer, 1);
    suite_await(world, peer, 1);
}

static void victim(const char *when)
{
    char *b = malloc(LONG), c[8] = "";
    strata_request_t *q[2];

    CHECK(b);
    if (!strcmp(when, "connecting")) {
        for (int i = 0; i < 2; i++)
            CHECK_OK(strata_isend(world, c, sizeof c, 2 * i, 2, &q[i]));
        die();
    }
    for (int i = 0; i < 2; i++) {
        if (!strcmp(when, "heard"))
            suite_signal(world, 2 * i, 1);
        else if (strcmp(when, "before") != 0)
            talk(2 * i);
    }
    for (int i = 0; i < 2; i++) {
        if (!strcmp(when, "sending"))
            CHECK_OK(strata_isend(world, b, LONG, 2 * i, 2, &q[i]));
        else if (!strcmp(when, "receiving"))
            CHECK_OK(strata_irecv(world, b, LONG, 2 * i, 2, &q[i]));
    }
    suite_spin(s, 5); /* long enough that something is under way, too short for all of it */
    die();
}

static void survivor(const char *when)
{
    char *b = calloc(2, LONG), c[8] = "";
    bool heard = !strcmp(when, "heard");
    strata_request_t *q[3];
    int failed = 0, n = heard ? 1 : 3;

    CHECK(b);
    if (heard)
        suite_await(world, VICTIM, 1);
    else if (strcmp(when, "before") != 0 && strcmp(when, "connecting") != 0)
        talk(VICTIM);
    long began = now_ms();
    int rc[3] = {strata_irecv(world, b, LONG, VICTIM, 2, &q[0])};
    if (!heard) {
        rc[1] = strata_isend(world, b + LONG, LONG, VICTIM, 2, &q[1]);
        rc[2] = strata_irecv(world, c, sizeof c, VICTIM, 3, &q[2]);
    }
    for (int i = 0; i < n; i++) {
        CHECK(rc[i] == STRATA_OK || rc[i] == STRATA_ERR_PEER || rc[i] == STRATA_ERR_UNREACHABLE);
        failed += rc[i] != STRATA_OK || ends(&q[i]) != STRATA_OK;
    }
    CHECK_MSG(failed > 0, "rank %d was told nothing of a dead peer", rank);
    printf("rank %d was told after %ld ms\n", rank, now_ms() - began);
    CHECK_RC(strata_ssend(world, c, sizeof c, VICTIM, 2), STRATA_ERR_PEER);
    talk(2 - rank);
    printf("rank %d goes on\n", rank);
    fflush(stdout);
    free(b);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);

    CHECK(argc > 1);
    CHECK_OK(strata_init(NULL, &s));
    world = strata_world(s);
    rank = strata_rank(s);
    CHECK_EQ(strata_size(s), 3);
    CHECK_OK(strata_fence(s)); /* whoever dies has been there */
    if (rank == VICTIM)
        victim(argv[1]);
    survivor(argv[1]);
    (void)strata_finalize(s); /* may say that not everybody took part; must return */
    watchdog_stop(dog);
    return 0;
}
