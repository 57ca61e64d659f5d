/* strata-memscale's results from the figures that ranks leave. */
#define _GNU_SOURCE 1
#include <check.h>
#include "support/run_suite.h"
#include "tools/strata-memscale/job.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

/* Stand-ins for the functions by which job_run starts a job: none is started here. */
const char *const pattern_names[N_PATTERNS] = {"hello", "pairwise", "alltoall"};

bool launch_folder(const struct plan *p, char *path, size_t size)
{
    (void)p, (void)path, (void)size;
    return false;
}

int launch_job(const struct config *c, int n, const struct plan *p, const char *const *what)
{
    (void)c, (void)n, (void)p, (void)what;
    return -1;
}

const char *config_launcher(const struct config *c)
{
    (void)c;
    return "none";
}

bool meeting_create(const char *folder)
{
    (void)folder;
    return false;
}

static const struct transport sm = {"sm", LIB_STRATA, "sm,self", false};
static const struct config config = {.name = "sm", .transport = &sm};
enum { BATCHES = 41 };

static json_t *batches(double us)
{
    json_t *list = json_array();

    for (int i = 0; i < BATCHES; i++)
        json_array_append_new(list, json_real(us));
    return list;
}

/* The files of `n` ranks, of which the even ones have timed their pairs, and the rank `alone` sent nothing. */
static void leave_ranks(const char *folder, int n, int alone)
{
    char path[200];

    for (int i = 0; i < n; i++) {
        json_t *j =
            json_pack("{s:s, s:f, s:f, s:{s:i}, s:{s:i}}", "library", "Strata", "init_us", 1000.0 * (i + 1), "first_us",
                      i == alone ? -1.0 : 90.0 + i, "kernel", "private", 4096 * (i + 1), "ours", "base: other", 100);
        if (i % 2 == 0 && i + 1 < n)
            json_object_set_new(j, "all_pairs_us", batches(1 + i));
        snprintf(path, sizeof path, "%s/rank.%d.json", folder, i);
        ck_assert_int_eq(json_dump_file(j, path, JSON_COMPACT), 0);
        json_decref(j);
    }
}

/* The measurement of a job of `n` ranks. */
static json_t *gathered(enum pattern pattern, int n, int alone)
{
    char folder[] = "/tmp/strata-job-test.XXXXXX", why[200] = "";

    ck_assert_ptr_nonnull(mkdtemp(folder));
    leave_ranks(folder, n, alone);
    json_t *one = job_gather(&config, pattern, n, folder, why, sizeof why);
    drop(folder);
    ck_assert_msg(one != NULL, "%s", why);
    return one;
}

static double of(const json_t *one, const char *group, const char *name)
{
    const json_t *value = json_object_get(json_object_get(one, group), name);

    ck_assert_msg(json_is_number(value), "no %s in %s", name, group);
    return json_number_value(value);
}

START_TEST(means_and_largest)
{
    json_t *one = gathered(PAIRWISE, 4, -1);

    ck_assert_double_eq(of(one, "mean", "private"), 4096 * 2.5);
    ck_assert_double_eq(of(one, "largest", "private"), 4096 * 4);
    ck_assert_double_eq(of(one, "mean", "init_us"), 2500);
    ck_assert_double_eq(of(one, "largest", "init_us"), 4000);
    ck_assert_double_eq(of(one, "mean", "first_us"), 91.5);
    json_decref(one);
}
END_TEST

/* The last of three ranks has no neighbour. */
START_TEST(who_sends_nothing_has_no_time)
{
    json_t *one = gathered(PAIRWISE, 3, 2);

    ck_assert_double_eq(of(one, "mean", "first_us"), 90.5);
    ck_assert_double_eq(of(one, "largest", "first_us"), 91);
    json_decref(one);
    one = gathered(HELLO, 1, 0);
    ck_assert_double_eq(of(one, "mean", "first_us"), -1);
    ck_assert_double_eq(of(one, "largest", "first_us"), -1);
    json_decref(one);
}
END_TEST

/* More pairs than 1024 batches have room for. */
START_TEST(latency_of_many_pairs)
{
    enum { RANKS = 64, PAIRS = RANKS / 2 };
    json_t *one = gathered(ALL_TO_ALL, RANKS, -1);

    ck_assert_double_eq(of(one, "all_pairs_us", "samples"), BATCHES * PAIRS);
    ck_assert_double_eq(of(one, "all_pairs_us", "median"), PAIRS + 1);
    json_decref(one);
}
END_TEST

START_TEST(a_rank_without_figures)
{
    char folder[] = "/tmp/strata-job-test.XXXXXX", why[200] = "";

    ck_assert_ptr_nonnull(mkdtemp(folder));
    leave_ranks(folder, 2, -1);
    ck_assert_ptr_null(job_gather(&config, HELLO, 3, folder, why, sizeof why));
    ck_assert_str_eq(why, "rank 2 left no figures");
    drop(folder);
    ck_assert_int_ne(access(folder, F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memscale_job");
    TCase *tc = tcase_create("gather");

    tcase_add_test(tc, means_and_largest);
    tcase_add_test(tc, who_sends_nothing_has_no_time);
    tcase_add_test(tc, latency_of_many_pairs);
    tcase_add_test(tc, a_rank_without_figures);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
