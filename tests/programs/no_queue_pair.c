/* A rank whose device makes no queue pair any more, for tests/openib: `no_queue_pair FILE`, five ranks. Rank 0 talks to ranks
 * 1 to 3, says "running" and its pid, and when FILE exists, by when it shall get no more queue pairs, sends to rank 4.
 * That request ends with STRATA_ERR_PEER; meanwhile and afterwards rank 0 and those that it is connected to go on
 * talking, but for one at most, whose connection was given up in vain. It says how long the request took, how many
 * messages went to the others meanwhile and how many of them are left. */
#include <time.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { OTHERS = 3, LAST = 4, TAG = 1, BOUND_S = 30 };

struct talk {
    long out, in;
    strata_request_t *q[2];
    bool failed;
};

static strata_t *s;
static strata_comm_t *world;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* -1: no more. */
static void say(struct talk *t, int peer, long what)
{
    int rc[2];

    t->out = what;
    rc[0] = strata_irecv(world, &t->in, sizeof t->in, peer, TAG, &t->q[0]);
    rc[1] = strata_isend(world, &t->out, sizeof t->out, peer, TAG, &t->q[1]);
    t->failed = rc[0] == STRATA_ERR_PEER || rc[1] == STRATA_ERR_PEER;
    CHECK(t->failed || (rc[0] == STRATA_OK && rc[1] == STRATA_OK));
}

/* What is said is answered; false: not yet. */
static bool answered(struct talk *t)
{
    for (int i = 0; i < 2; i++) {
        int done = 1, rc = t->q[i] ? strata_test(&t->q[i], &done, NULL) : STRATA_OK;
        CHECK_MSG(rc == STRATA_OK || rc == STRATA_ERR_PEER, "%s", strata_strerror(rc));
        t->failed |= rc == STRATA_ERR_PEER;
        if (!done)
            return false;
    }
    CHECK(t->failed || t->in == t->out);
    return true;
}

static void answer(void)
{
    for (long what = 0; what >= 0;) {
        int rc = strata_recv(world, &what, sizeof what, 0, TAG, NULL);
        if (rc == STRATA_OK)
            rc = strata_send(world, &what, sizeof what, 0, TAG);
        if (rc == STRATA_ERR_PEER)
            return;
        CHECK_OK(rc);
    }
}

static long rounds(struct talk *t)
{
    long n = 0;

    for (int i = 0; i < OTHERS; i++)
        if (!t[i].failed && answered(&t[i]) && !t[i].failed) {
            n++;
            say(&t[i], i + 1, t[i].out + 1);
        }
    return n;
}

/* Ends with those that are left; how many. One that was given up fails when it has waited as long. */
static int end(struct talk *t)
{
    int left = 0;

    for (int i = 0; i < OTHERS; i++) {
        double until = now_s() + BOUND_S;
        while (!t[i].failed && !answered(&t[i]))
            CHECK_MSG(now_s() < until, "rank %d does not answer and has not failed", i + 1);
        if (t[i].failed)
            continue;
        say(&t[i], i + 1, -1);
        while (!answered(&t[i]))
            CHECK(now_s() < until);
        left += !t[i].failed;
    }
    return left;
}

static void starve(const char *when)
{
    struct talk t[OTHERS] = {0};
    strata_request_t *q;
    long word = 1, n = 0;
    int done = 0, rc = STRATA_OK;

    for (int i = 0; i < OTHERS; i++)
        say(&t[i], i + 1, 0);
    for (int i = 0; i < OTHERS; i++)
        while (!answered(&t[i]))
            ;
    fprintf(stderr, "running %d\n", (int)getpid());
    while (access(when, F_OK) != 0)
        strata_progress(s);
    for (int i = 0; i < OTHERS; i++)
        say(&t[i], i + 1, 1);
    double began = now_s();
    CHECK_OK(strata_isend(world, &word, sizeof word, LAST, TAG, &q));
    while (!done) {
        rc = strata_test(&q, &done, NULL);
        n += rounds(t);
        CHECK_MSG(now_s() - began < BOUND_S, "the request does not end");
    }
    CHECK_RC(rc, STRATA_ERR_PEER);
    double took = now_s() - began;
    int left = end(t);
    printf("ended after %.0f ms, %ld messages meanwhile, %d left\n", took * 1e3, n, left);
    CHECK_MSG(left >= OTHERS - 1 && n > OTHERS, "of three only %d are left, %ld messages", left, n);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);

    CHECK(argc > 1);
    CHECK_OK(strata_init(NULL, &s));
    world = strata_world(s);
    CHECK_EQ(strata_size(s), OTHERS + 2);
    if (strata_rank(s) == 0)
        starve(argv[1]);
    else
        answer();
    (void)strata_finalize(s); /* may say that not everybody took part; must return */
    watchdog_stop(dog);
    return 0;
}
