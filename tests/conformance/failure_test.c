/* Peers that fail: every operation that involves them ends, with STRATA_ERR_PEER or with its data; the others go on. */
#include <check.h>
#include "support/suite.h"
#include "support/run_suite.h"

enum { RANKS = 3, VICTIM = 2, WINDOW = 12 };

/* An operation with a dead peer ends; of one that does not, the world's watchdog prints the stacks. */
static int wait_for_end(struct tw_rank *r, strata_request_t **q, strata_status_t *st)
{
    int done = 0, rc = STRATA_OK;
    while (!done) {
        rc = strata_test(q, &done, st);
        if (!done)
            suite_spin(r->s, 1);
    }
    /* What the victim meets may be named otherwise: memory that the others have withdrawn, for one. */
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER || r->rank == VICTIM);
    /* Why is said before: a caller who ends at the first error leaves no riddle behind. */
    CHECK(rc != STRATA_ERR_PEER || r->rank == VICTIM || tw_was_told(r, VICTIM));
    return rc;
}

/* The two survivors still reach each other, also by wildcard. */
static void survivors_talk(struct tw_rank *r)
{
    int peer = 1 - r->rank;
    size_t len[] = {8, 3000, suite_long(r->s)};
    for (int i = 0; i < 3; i++) {
        strata_request_t *q[2];
        char *in = suite_buffer(len[i]), *out = suite_buffer(len[i]);
        pattern_fill(out, len[i], (uint64_t)r->rank);
        CHECK_OK(strata_irecv(r->comm, in, len[i], i == 1 ? STRATA_ANY_SOURCE : peer, 70 + i, &q[0]));
        CHECK_OK(strata_isend(r->comm, out, len[i], peer, 70 + i, &q[1]));
        CHECK_OK(strata_waitall(2, q, NULL));
        CHECK_EQ(pattern_check(in, len[i], (uint64_t)peer), -1);
        suite_buffer_free(in, len[i]);
        suite_buffer_free(out, len[i]);
    }
}

/* A window of sends to and receives from the victim, of every kind. */
struct window {
    strata_request_t *q[WINDOW];
    char *b[WINDOW];
    size_t len[WINDOW];
    bool receive[WINDOW];
};

static void window_start(struct tw_rank *r, struct window *w, int peer)
{
    size_t len[] = {8, 700, 5000, suite_long(r->s)};
    for (int i = 0; i < WINDOW; i++) {
        int rc;
        /* What one side sends the other receives, in the same order. */
        w->receive[i] = (i % 2 == 0) == (r->rank == VICTIM);
        w->len[i] = len[i / 2 % 4];
        w->b[i] = suite_buffer(w->len[i]);
        pattern_fill(w->b[i], w->len[i], (uint64_t)i);
        if (w->receive[i]) {
            memset(w->b[i], 0, w->len[i]);
            rc = strata_irecv(r->comm, w->b[i], w->len[i], peer, i, &w->q[i]);
        } else {
            rc = strata_isend_mode(r->comm, w->b[i], w->len[i], peer, i, i % 3 ? STRATA_STANDARD : STRATA_SYNCHRONOUS,
                                   &w->q[i]);
        }
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
        if (rc != STRATA_OK)
            w->q[i] = NULL;
    }
}

/* How many ended in STRATA_ERR_PEER. */
static int window_end(struct tw_rank *r, struct window *w)
{
    int failed = 0;
    for (int i = 0; i < WINDOW; i++) {
        strata_status_t st;
        if (!w->q[i]) {
            failed++;
        } else if (wait_for_end(r, &w->q[i], &st) != STRATA_OK) {
            CHECK(st.error == STRATA_ERR_PEER || r->rank == VICTIM);
            failed++;
        } else if (w->receive[i]) {
            CHECK_EQ(st.length, w->len[i]);
            CHECK_EQ(pattern_check(w->b[i], w->len[i], (uint64_t)i), -1);
        }
    }
    return failed;
}

/* Only when all are through: the victim lives, and its transport may still read and write what the others gave it. */
static void window_free(struct window *w)
{
    for (int i = 0; i < WINDOW; i++)
        suite_buffer_free(w->b[i], w->len[i]);
}

/* The victim hears nothing of it: somebody tells it in the end, so that it ends as well. */
static void victim(struct tw_rank *r)
{
    struct window w[2];
    for (int p = 0; p < 2; p++)
        window_start(r, &w[p], p);
    tw_quiesce(r); /* the others are through */
    for (int p = 0; p < 2; p++)
        CHECK_OK(strata_host_peer_failed(r->s, p, "the test is over"));
    for (int p = 0; p < 2; p++)
        window_end(r, &w[p]);
    tw_quiesce(r);
    for (int p = 0; p < 2; p++)
        window_free(&w[p]);
}

static void check_dead(struct tw_rank *r)
{
    char c[8] = "";
    strata_request_t *q = NULL;
    suite_spin(r->s, 3); /* it is acted upon, and told, by progress */
    CHECK(tw_failures(r->world, VICTIM) >= 1);
    CHECK_RC(strata_send(r->comm, c, 8, VICTIM, 1), STRATA_ERR_PEER);
    CHECK_RC(strata_ssend(r->comm, c, 8, VICTIM, 1), STRATA_ERR_PEER);
    CHECK_RC(strata_recv(r->comm, c, 8, VICTIM, 99, NULL), STRATA_ERR_PEER);
    int rc = strata_irecv(r->comm, c, 8, VICTIM, 99, &q);
    CHECK(rc == STRATA_ERR_PEER || wait_for_end(r, &q, NULL) == STRATA_ERR_PEER);
}

/* The transport loses the connection by itself, after so many operations. */
static void broken(struct tw_rank *r)
{
    struct window w;
    if (r->rank == VICTIM) {
        victim(r);
        return;
    }
    char c[8] = "";
    window_start(r, &w, VICTIM);
    for (int i = 0; strata_send(r->comm, c, 8, VICTIM, 400) == STRATA_OK; i++) {
        CHECK_MSG(i < 1000, "the connection does not break");
        suite_spin(r->s, 10);
    }
    window_end(r, &w);
    suite_spin(r->s, 3); /* the embedder is told by progress */
    check_dead(r);
    survivors_talk(r);
    tw_quiesce(r);
    tw_quiesce(r);
    window_free(&w);
}

/* The same inside the calls that take messages which have come before. */
static void broken_in_receive(struct tw_rank *r)
{
    enum { LONG = 7 }; /* of the victim's window, in standard mode: nothing is answered before it is fetched */
    if (r->rank == VICTIM) {
        victim(r);
        return;
    }
    size_t len = suite_long(r->s);
    char c[8] = "", *b = suite_buffer(len);
    CHECK_OK(strata_send(r->comm, c, 8, VICTIM, 400)); /* the one operation that works: connected */
    CHECK_OK(strata_probe(r->comm, VICTIM, LONG, NULL));
    CHECK_RC(strata_recv(r->comm, b, len, VICTIM, LONG, NULL), STRATA_ERR_PEER);
    suite_buffer_free(b, len);
    CHECK(tw_was_told(r, VICTIM));
    check_dead(r);
    survivors_talk(r);
    tw_quiesce(r);
    tw_quiesce(r);
}

/* The embedder knows it first. */
static void told(struct tw_rank *r)
{
    struct window w;
    strata_request_t *any = NULL;
    char c[8];
    if (r->rank == VICTIM) {
        victim(r);
        return;
    }
    CHECK_OK(strata_irecv(r->comm, c, 8, STRATA_ANY_SOURCE, 300, &any));
    window_start(r, &w, VICTIM);
    suite_spin(r->s, r->rank ? 0 : 200);
    CHECK_OK(strata_host_peer_failed(r->s, VICTIM, "the test says so"));
    CHECK_OK(strata_host_peer_failed(r->s, VICTIM, "the test says so again"));
    window_end(r, &w);
    check_dead(r);
    survivors_talk(r);
    if (r->rank == 0)
        suite_send(r->comm, 8, 1, 300, 5);
    else
        suite_send(r->comm, 8, 0, 300, 6);
    CHECK_OK(strata_wait(&any, NULL)); /* a receive from anybody outlives one of them */
    CHECK_EQ(pattern_check(c, 8, r->rank ? 5 : 6), -1);
    tw_quiesce(r);
    CHECK_EQ(tw_failures(r->world, VICTIM), 2); /* each survivor, once */
    tw_quiesce(r);
    window_free(&w);
}

#define SHUFFLE "btl=shuffle,self "
#define BREAK   SHUFFLE "btl_shuffle_fail_rank=2 btl_shuffle_fail_after="
static const struct {
    const char *name, *settings;
    tw_body_fn body;
} runs[] = {
    {"broken at once", BREAK "0", broken},
    {"broken early", BREAK "3", broken},
    {"broken", BREAK "12", broken},
    {"broken later", BREAK "40 btl_shuffle_seed=5", broken},
    {"broken in put", BREAK "15 btl_shuffle_get=0", broken},
    {"broken in streams", BREAK "30 btl_shuffle_get=0 btl_shuffle_put=0", broken},
    {"broken with registration", BREAK "14 btl_shuffle_needs_reg=1", broken},
    {"broken on rails", BREAK "10 btl_shuffle_rails=3 btl_shuffle_needs_reg=1", broken},
    {"broken in a receive", BREAK "1 btl_shuffle_put=0", broken_in_receive},
    {"told, shuffle", SHUFFLE, told},
    {"told, registration", SHUFFLE "btl_shuffle_needs_reg=1 btl_shuffle_rails=2", told},
    {"told, sm", "btl=sm,self", told},
    {"told, sm, copies", "btl=sm,self btl_sm_single_copy=off", told},
    {"told, sm, single copies", "btl=sm,self btl_sm_single_copy=cooperative btl_sm_rdma_min=4k", told},
};

START_TEST(one)
{
    fprintf(stderr, "run %s\n", runs[_i].name);
    tw_run(&(struct tw_options){.n = RANKS, .settings = runs[_i].settings, .quiet = true}, runs[_i].body, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conformance-failure");
    TCase *tc = tcase_create("failure");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, one, 0, (int)(sizeof runs / sizeof runs[0]));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
