/* Several paths of which some break at random points, lose what is on its way and come back: every message arrives
 * once, in order, with the right bytes. The transport is btl_shuffle, whose ranks are threads. */
#include <check.h>
#include "support/counters.h"
#include "support/pattern.h"
#include "support/random.h"
#include "support/world.h"
#include "support/run_suite.h"

enum { BATCH = 12, LONGEST = 150000 };

struct traffic {
    int batches;
    uint64_t seed;
    bool expect_breaks;
};

static size_t length_of(int src, int dst, int i)
{
    static const size_t most[] = {0, 64, 512, 4096, 20000, LONGEST};
    struct rnd r = {((uint64_t)src << 40) ^ ((uint64_t)dst << 20) ^ (uint64_t)i};
    size_t top = most[rnd_below(&r, 6)];
    return top ? rnd_below(&r, (uint32_t)top) + 1 : 0;
}

static uint64_t seed_of(int src, int dst, int i)
{
    return (uint64_t)src * 1000003u + (uint64_t)dst * 10007u + (uint64_t)i;
}

/* All messages of a pair have one tag: that the i-th receive gets the i-th message is checked by its length and bytes.
 */
static void batch(struct tw_rank *r, struct rnd *rnd, int first, char *out, char *in)
{
    strata_request_t *q[2 * BATCH];
    strata_status_t st[2 * BATCH];
    int other = (r->rank + 1) % r->n, from = (r->rank + r->n - 1) % r->n, n = 0;
    bool late = rnd_below(rnd, 2);

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < BATCH; i++) {
            size_t len = length_of(r->rank, other, first + i);
            char *at = out + (size_t)i * LONGEST;
            if ((pass == 0) == late) {
                pattern_fill(at, len, seed_of(r->rank, other, first + i));
                CHECK_OK(strata_isend_mode(r->comm, at, len, other, 5,
                                           rnd_below(rnd, 4) ? STRATA_STANDARD : STRATA_SYNCHRONOUS, &q[n++]));
            } else {
                CHECK_OK(strata_irecv(r->comm, in + (size_t)i * LONGEST, LONGEST, from, 5, &q[n++]));
            }
        }
        for (uint32_t i = 0; late && i < rnd_below(rnd, 200); i++)
            strata_progress(r->s);
    }
    CHECK_OK(strata_waitall((size_t)n, q, st));
    for (int i = 0; i < BATCH; i++) {
        size_t len = length_of(from, r->rank, first + i);
        CHECK_EQ(st[(late ? BATCH : 0) + i].length, len);
        CHECK_EQ(pattern_check(in + (size_t)i * LONGEST, len, seed_of(from, r->rank, first + i)), -1);
    }
}

static void all_arrive(struct tw_rank *r)
{
    const struct traffic *t = r->arg;
    struct rnd rnd = {t->seed + (uint64_t)r->rank};
    char *out = malloc((size_t)BATCH * LONGEST), *in = malloc((size_t)BATCH * LONGEST);
    int found = 0;

    CHECK(out && in);
    for (int b = 0; b < t->batches; b++)
        batch(r, &rnd, b * BATCH, out, in);
    tw_quiesce(r);
    CHECK_OK(strata_iprobe(r->comm, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &found, NULL));
    CHECK_EQ(found, 0); /* nothing came twice */
    CHECK_EQ(counted(r->s, "pml", "ob1", "paths_failed") != 0, t->expect_breaks);
    free(out);
    free(in);
}

/* Paths come back after a number of polls. Ranks that wait sleep and do not yield: beside other work a yield lasts as
 * long as everybody's turn, and so would each poll. */
#define BREAKS                                                                                                         \
    "mca_base_yield=0 btl=shuffle,self btl_shuffle_rails=3 btl_shuffle_break_rails=2 btl_shuffle_break_after=60 "      \
    "pml_ob1_stripe_min=16k "                                                                                          \
    "pml_ob1_piece=30000 pml_ob1_path_retry_ms=1 "

#define KEPT "btl_shuffle_rails=1 btl_shuffle_break_rails=1 pml_ob1_path_keep=1 "

static const char *const settings[] = {
    BREAKS "btl_shuffle_seed=1",
    BREAKS "btl_shuffle_seed=2 btl_shuffle_needs_reg=1",
    BREAKS "btl_shuffle_seed=3 btl_shuffle_needs_reg=1 btl_shuffle_put=0",
    BREAKS "btl_shuffle_seed=4 pml_ob1_rndv=put btl_shuffle_needs_reg=1",
    BREAKS "btl_shuffle_seed=5 pml_ob1_rndv=get",
    BREAKS "btl_shuffle_seed=6 pml_ob1_rndv=pipeline btl_shuffle_gather=0",
    BREAKS "btl_shuffle_seed=7 btl_shuffle_unsupported_percent=5 btl_shuffle_needs_reg=1",
    BREAKS "btl_shuffle_seed=8 btl_shuffle_break_after=15 btl_shuffle_mend_polls=100000", /* once broken they stay so */
    BREAKS "btl_shuffle_seed=10 btl_shuffle_break_silent=1 btl_shuffle_needs_reg=1",
    BREAKS "btl_shuffle_seed=11 btl_shuffle_break_silent=1 pml_ob1_rndv=put btl_shuffle_mend_polls=100000",
    /* each end soon leaves another path, and the other one is not told by its device */
    BREAKS "btl_shuffle_seed=12 btl_shuffle_break_silent=1 btl_shuffle_break_after=8 btl_shuffle_mend_polls=100000",
    BREAKS "btl_shuffle_seed=9 btl_shuffle_break_after=5 btl_shuffle_window=40 btl_shuffle_delay=30",
    /* at times no path is left, until one comes back */
    BREAKS "btl_shuffle_seed=13 btl_shuffle_break_rails=3 btl_shuffle_needs_reg=1",
    BREAKS "btl_shuffle_seed=14 btl_shuffle_rails=2 btl_shuffle_break_after=25",
    BREAKS
    "btl_shuffle_seed=15 btl_shuffle_rails=2 btl_shuffle_break_after=40 pml_ob1_rndv=put btl_shuffle_needs_reg=1",
    /* one path, which comes back: what goes by it is kept on request */
    BREAKS KEPT "btl_shuffle_seed=16 btl_shuffle_needs_reg=1",
    BREAKS KEPT "btl_shuffle_seed=17 pml_ob1_rndv=put btl_shuffle_break_after=25",
    BREAKS KEPT "btl_shuffle_seed=18 pml_ob1_rndv=pipeline btl_shuffle_gather=0",
    BREAKS KEPT "btl_shuffle_seed=19 btl_shuffle_unsupported_percent=5 btl_shuffle_window=40 btl_shuffle_delay=30",
};
enum { N_SETTINGS = sizeof(settings) / sizeof(settings[0]) };

START_TEST(nothing_lost_nothing_twice)
{
    struct traffic t = {.batches = test_sanitized() ? 4 : 12, .seed = (uint64_t)_i, .expect_breaks = true};
    tw_run(&(struct tw_options){.n = 2 + _i % 2, .settings = settings[_i], .quiet = true}, all_arrive, &t);
}
END_TEST

START_TEST(threads)
{
    struct traffic t = {.batches = test_sanitized() ? 2 : 6, .seed = 77, .expect_breaks = true};
    struct tw_options o = {.n = 2, .settings = settings[1], .level = STRATA_THREAD_MULTIPLE, .quiet = true};
    tw_run(&o, all_arrive, &t);
}
END_TEST

START_TEST(several_paths_without_failure)
{
    struct traffic t = {.batches = 4, .seed = 5};
    tw_run(&(struct tw_options){.n = 2, .settings = "btl=shuffle,self btl_shuffle_rails=4"}, all_arrive, &t);
}
END_TEST

/* Every path breaks and none comes back: everyone gets an error that names the peer. */
static void all_fail(struct tw_rank *r)
{
    char x[600] = {0}, y[600];
    int other = 1 - r->rank, rc = STRATA_OK, i;

    for (i = 0; i < 100000 && rc == STRATA_OK; i++)
        rc = strata_sendrecv(r->comm, x, sizeof(x), other, 1, y, sizeof(y), other, 1, NULL);
    CHECK_RC(rc, STRATA_ERR_PEER);
    while (tw_failures(r->world, other) == 0) /* the watchdog bounds it */
        strata_progress(r->s);
    CHECK_EQ(tw_failures(r->world, other), 1);
    CHECK_RC(strata_send(r->comm, x, sizeof(x), other, 1), STRATA_ERR_PEER);
}

START_TEST(no_path_left)
{
    struct tw_options o = {.n = 2,
                           .settings = "btl=shuffle,self btl_shuffle_rails=3 btl_shuffle_break_after=50 "
                                       "btl_shuffle_mend_polls=1000000000 pml_ob1_path_wait_ms=20",
                           .quiet = true};
    tw_run(&o, all_fail, NULL);
}
END_TEST

/* One end has given the other up, whose paths all look well: it is told when it sends, and waits for nothing. */
static void one_gives_up(struct tw_rank *r)
{
    char x[8] = {0}, y[8];
    int other = 1 - r->rank;

    CHECK_OK(strata_sendrecv(r->comm, x, sizeof(x), other, 1, y, sizeof(y), other, 1, NULL));
    tw_barrier(r);
    if (r->rank == 1)
        CHECK_OK(strata_host_peer_failed(r->s, 0, "the test says so"));
    else
        CHECK_RC(strata_ssend(r->comm, x, sizeof(x), 1, 1), STRATA_ERR_PEER);
    while (r->rank == 1 && tw_failures(r->world, 1) == 0)
        strata_progress(r->s);
}

START_TEST(given_up)
{
    struct tw_options o = {.n = 2, .settings = "btl=shuffle,self btl_shuffle_rails=2", .quiet = true};
    tw_run(&o, one_gives_up, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_path_failure");
    TCase *tc = tcase_create("paths");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, nothing_lost_nothing_twice, 0, N_SETTINGS);
    tcase_add_test(tc, threads);
    tcase_add_test(tc, several_paths_without_failure);
    tcase_add_test(tc, no_path_left);
    tcase_add_test(tc, given_up);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
