/* The account of the process's memory: its lines add up to what is private. */
#include <check.h>
#include <string.h>
#include "framework/base/account.h"
#include "support/run_suite.h"

struct seen {
    int64_t whole, parts; /* "private", and the sum of what it consists of */
};

static void take(void *arg, const strata_mem_line_t *line)
{
    static const char *const parts[] = {"before strata_init", "libraries", "free in malloc", "stack",
                                        "not accounted for"};
    struct seen *s = arg;

    if (strcmp(line->category, "private") == 0)
        s->whole = (int64_t)line->bytes;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(line->category, parts[i]) == 0)
            s->parts += (int64_t)line->bytes;
    if (strcmp(line->category, "accounted twice") == 0)
        s->parts -= (int64_t)line->bytes;
}

static void expect_closed(int64_t libraries, size_t stack, size_t ours)
{
    const struct st_account a = {.on = true, .before = {.private_bytes = 100, .stack = stack}, .libraries = libraries};
    struct seen s = {0};

    st_account_report(&a, ours, take, &s);
    ck_assert_int_gt(s.whole, 0);
    ck_assert_int_eq(s.whole, s.parts + (int64_t)ours);
}

START_TEST(grown)
{
    expect_closed(1000, 0, 5000);
    expect_closed(0, 0, (size_t)1 << 40); /* more than there is: accounted twice */
}
END_TEST

/* Libraries that have given back more than they took, and a stack that was larger when strata_init was called. */
START_TEST(shrunk)
{
    expect_closed(-(1ll << 40), 0, 5000);
    expect_closed(1000, (size_t)1 << 40, 5000);
}
END_TEST

static size_t most_of(struct st_account *a, size_t bytes)
{
    const strata_mem_line_t line = {.component = "btl_openib", .category = "peers", .bytes = bytes};

    return st_account_most(a, &line);
}

/* Two modules of a component: their sum in one report is the mark, and lines of two reports are not added. */
START_TEST(most_of_two_modules)
{
    struct st_account a = {.reports = 1};

    ck_assert_uint_eq(most_of(&a, 300), 300);
    ck_assert_uint_eq(most_of(&a, 500), 800);
    a.reports++;
    ck_assert_uint_eq(most_of(&a, 400), 800);
    ck_assert_uint_eq(most_of(&a, 100), 800);
    a.reports++;
    ck_assert_uint_eq(most_of(&a, 900), 900);
    st_account_end(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("account");
    TCase *t = tcase_create("report");

    tcase_add_test(t, grown);
    tcase_add_test(t, shrunk);
    tcase_add_test(t, most_of_two_modules);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
