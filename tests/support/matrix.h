/* Runs the conformance suite over a list of transports and settings, one Check test per case, ranks as threads.
 *
 * Environment: STRATA_CONFORMANCE=WORD runs only tests whose name "variant/group/case" contains WORD. */
#ifndef TEST_SUPPORT_MATRIX_H
#define TEST_SUPPORT_MATRIX_H

#include <check.h>
#include "support/form.h"
#include "support/suite.h"

struct variant {
    const char *name;
    const char *settings;
    int max_ranks;   /* 0: any */
    bool quick_only; /* leave SUITE_SLOW cases out */
};

#define MATRIX_MAX 2000
struct matrix_entry {
    const struct variant *variant;
    const struct suite_group *group;
    const struct suite_case *c;
    unsigned long ordinal; /* of the case among those of the suite */
    char name[120];
};
static struct matrix_entry matrix_entries[MATRIX_MAX];
static int matrix_n;

static void matrix_body(struct tw_rank *r)
{
    const struct suite_case *c = r->arg;
    if (r->rank < c->ranks)
        c->body(r);
}

static void matrix_run_one(const struct matrix_entry *e)
{
    /* A second rank even where one would do: a transport between ranks refuses a job of one. */
    int n = e->c->ranks > 1 || e->variant->max_ranks == 1 ? e->c->ranks : 2;
    struct tw_options o = {.n = n, .settings = e->variant->settings};
    o.level = e->c->flags & SUITE_MULTIPLE ? STRATA_THREAD_MULTIPLE : STRATA_THREAD_SINGLE;
    fprintf(stderr, "run %s\n", e->name);
    tw_run(&o, matrix_body, (void *)(uintptr_t)e->c);
}

START_TEST(matrix_case)
{
    matrix_run_one(&matrix_entries[_i]);
}
END_TEST

/* Adds one variant's cases; in the short form those whose turn it is, of `turns` variants that share them. */
static void matrix_add_turn(const struct variant *v, unsigned long turn, unsigned long turns)
{
    const char *only = getenv("STRATA_CONFORMANCE");
    unsigned long ordinal = 0;
    for (int g = 0; suite_all[g]; g++)
        for (size_t i = 0; i < suite_all[g]->n; i++, ordinal++) {
            const struct suite_case *c = &suite_all[g]->cases[i];
            struct matrix_entry *e = &matrix_entries[matrix_n];
            if ((v->max_ranks && c->ranks > v->max_ranks) || (v->quick_only && (c->flags & SUITE_SLOW)))
                continue;
            if (ordinal % turns != turn && test_form(true, false))
                continue;
            if (matrix_n == MATRIX_MAX)
                test_fail(__FILE__, __LINE__, "more than %d cases", MATRIX_MAX);
            *e = (struct matrix_entry){.variant = v, .group = suite_all[g], .c = c, .ordinal = ordinal};
            snprintf(e->name, sizeof e->name, "%s/%s/%s", v->name, suite_all[g]->name, c->name);
            if (!only || strstr(e->name, only))
                matrix_n++;
        }
}

static inline void matrix_add(const struct variant *v)
{
    matrix_add_turn(v, 0, 1);
}

/* Runs what was added; the program's exit status. */
static int matrix_main(const char *title)
{
    Suite *s = suite_create(title);
    TCase *tc = tcase_create(title);
    tcase_set_timeout(tc, 0); /* each world has a watchdog that says more */
    tcase_add_loop_test(tc, matrix_case, 0, matrix_n);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    TestResult **results = srunner_failures(sr);
    (void)results;
    free(results);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A long test: every case over each variant; in the short form each case over one of them, in turn, but no slow ones.
 */
static inline int matrix_long_main(const char *title, const struct variant *variants, size_t n)
{
    unsigned long seed = test_seed(1);
    int kept = 0;
    for (size_t i = 0; i < n; i++)
        matrix_add(&variants[i]);
    int all = matrix_n;
    for (int i = 0; i < all; i++) {
        const struct matrix_entry *e = &matrix_entries[i];
        bool its_turn = (e->ordinal + seed) % n == (size_t)(e->variant - variants) && !(e->c->flags & SUITE_SLOW);
        if (its_turn || test_form(false, true))
            matrix_entries[kept++] = *e;
    }
    matrix_n = kept;
    test_form_print(seed, (unsigned long)kept, (unsigned long)all, "cases");
    return matrix_main(title);
}

#endif
