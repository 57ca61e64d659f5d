/* Results of strata-miba as it prints them: what is less than noise is marked, and all forms stay valid whatever a
 * figure or a reason is; a run that goes on keeps what there was. */
#include "config.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if __has_include(<infiniband/verbs.h>)

/* The tool is a program: its parts are compiled into this one. */
/* NOLINTBEGIN(bugprone-suspicious-include) */
#include "tools/strata-miba/case.c"
#include "tools/strata-miba/names.c"
#include "tools/strata-miba/print.c"
#include "tools/strata-miba/results.c"
#include "tools/strata-miba/stats.c"
#include "tools/strata-miba/status.c"
/* NOLINTEND(bugprone-suspicious-include) */

static const uint64_t values[] = {1};
static const struct miba_test moving = {.name = "moving", .x_name = "size", .values = values, .n_values = 1};
static const struct miba_case sends = {.test = &moving, .op = OP_SEND, .transport = RC, .x = 1};
static struct samples samples;

static void sampled(const double *value, unsigned n)
{
    samples.n = 0;
    for (unsigned i = 0; i < n; i++)
        samples_add(&samples, value[i]);
}

/* perftest has printed negative averages. */
START_TEST(less_than_nothing_is_marked)
{
    const double below[] = {-3, -2, 1}, above[] = {-1, 2, 3};
    struct results r = {.out = fopen("/dev/null", "w"), .form = FORM_JSON};
    struct miba_why why;

    ck_assert_ptr_nonnull(r.out);
    sampled(below, 3);
    ck_assert_int_eq(results_samples(&r, &sends, "a", UNIT_NS, &samples, &why), MIBA_OK);
    /* Tests that make the result themselves, as load does. */
    const struct result own = {.c = sends, .figure = "b", .unit = UNIT_NS, .sum = samples_summary(&samples)};
    ck_assert_int_eq(results_add(&r, &own, &why), MIBA_OK);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(r.all[i].marked);
        ck_assert_str_eq(r.all[i].why.text, "less than the noise of this machine");
    }
    sampled(above, 3);
    ck_assert_int_eq(results_samples(&r, &sends, "c", UNIT_NS, &samples, &why), MIBA_OK);
    ck_assert(!r.all[2].marked);
    /* A reason that is there already stays. */
    struct result marked = own;
    marked.marked = true;
    miba_fail(&marked.why, MIBA_OK, "lost");
    ck_assert_int_eq(results_add(&r, &marked, &why), MIBA_OK);
    ck_assert_str_eq(r.all[3].why.text, "lost");
    fclose(r.out);
    results_free(&r);
}
END_TEST

/* One result as it is printed, read back. */
static json_t *read_back(const struct result *one)
{
    char *text = NULL;
    size_t size = 0;
    struct results r = {.out = open_memstream(&text, &size), .form = FORM_JSON};
    struct miba_why why;

    ck_assert_ptr_nonnull(r.out);
    ck_assert_int_eq(results_add(&r, one, &why), MIBA_OK);
    fclose(r.out);
    json_t *j = json_loads(text, 0, NULL);
    ck_assert_msg(j != NULL, "not JSON: %s", text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + size - 1);
    free(text);
    results_free(&r);
    return j;
}

/* perftest has printed JSON that cannot be read. */
START_TEST(json_is_json)
{
    const double odd[] = {0, -0.0, 1e-300, 1e300, NAN, INFINITY, -INFINITY};
    static const char *const reasons[] = {"a \"quoted\" one", "a\nline\tand \\ more", "\x01\x7f", "50 %s"};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const struct result one = {.c = sends, .figure = "a", .unit = UNIT_NS, .sum = {.median = odd[i], .n = 1}};
        json_t *j = read_back(&one);
        const json_t *median = json_object_get(j, "median");
        ck_assert(isfinite(odd[i]) ? json_real_value(median) == odd[i] : median == NULL);
        json_decref(j);
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        struct result one = {.c = sends, .figure = "a", .status = MIBA_SKIPPED};
        miba_fail(&one.why, MIBA_SKIPPED, "%s", reasons[i]);
        json_t *j = read_back(&one);
        ck_assert_str_eq(json_string_value(json_object_get(j, "reason")), reasons[i]);
        json_decref(j);
    }
}
END_TEST

static char text_of_file[8192];

static const char *content(const char *path)
{
    FILE *f = fopen(path, "r");

    ck_assert_ptr_nonnull(f);
    text_of_file[fread(text_of_file, 1, sizeof text_of_file - 1, f)] = 0;
    fclose(f);
    return text_of_file;
}

/* A run that goes on writes the earlier results anew: when the disk is full meanwhile they stay as they are. */
START_TEST(earlier_results_stay_on_a_full_disk)
{
    char folder[] = "/tmp/strata-miba-results.XXXXXX", path[64], beside[80], before[8192];
    struct results r = {0};
    struct miba_why why;
    struct rlimit limit;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lines", folder);
    snprintf(beside, sizeof beside, "%s.new", path);
    json_t *about = json_pack("{s:s}", "tool", "strata-miba");
    ck_assert_int_eq(results_open(&r, path, FORM_JSON, &why), MIBA_OK);
    ck_assert_int_eq(results_begin(&r, about, &why), MIBA_OK);
    sampled((const double[]){1, 2, 3}, 3);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(results_samples(&r, &sends, "a", UNIT_NS, &samples, &why), MIBA_OK);
    ck_assert(results_end(&r, 0, NULL));
    snprintf(before, sizeof before, "%s", content(path));
    ck_assert_uint_gt(strlen(before), 2048);

    /* A limit of a file's size in place of a small disk. */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit small = {.rlim_cur = 1024, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    r.out = NULL;
    enum miba_status status = results_open(&r, path, FORM_JSON, &why);
    if (!status)
        status = results_begin(&r, about, &why);
    results_end(&r, 1, why.text);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(status, MIBA_BROKEN);
    ck_assert_msg(strstr(why.text, "results cannot be written") != NULL, "%s", why.text);
    ck_assert_str_eq(content(path), before);
    ck_assert_int_ne(access(beside, F_OK), 0);

    /* With room they are there again, in the same file. */
    r.broken = false;
    ck_assert_int_eq(results_open(&r, path, FORM_JSON, &why), MIBA_OK);
    ck_assert_int_eq(results_begin(&r, about, &why), MIBA_OK);
    ck_assert(results_end(&r, 0, NULL));
    ck_assert_str_eq(content(path), before);
    ck_assert_int_ne(access(beside, F_OK), 0);
    json_decref(about);
    results_free(&r);
    unlink(path);
    rmdir(folder);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("strata-miba results");
    TCase *c = tcase_create("results");
    SRunner *r = srunner_create(s);

    tcase_add_test(c, less_than_nothing_is_marked);
    tcase_add_test(c, json_is_json);
    tcase_add_test(c, earlier_results_stay_on_a_full_disk);
    suite_add_tcase(s, c);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#else

int main(void)
{
    puts("SKIP: built without libibverbs (Debian: libibverbs-dev)");
    return 77;
}

#endif
