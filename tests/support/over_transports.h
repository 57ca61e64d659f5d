/* The main function of tests of worker clients: each case over every transport that strata-info finds, and over
 * settings of its own. Included once by the test program; compiled for strata-conformance it has the cases only.
 *
 * Environment: STRATA_CONFORMANCE=WORD runs only tests whose name "settings/case" contains WORD. */
#ifndef TEST_SUPPORT_OVER_TRANSPORTS_H
#define TEST_SUPPORT_OVER_TRANSPORTS_H

#include "support/over_suite.h"

#ifndef OVER_COLLECTED
#include <check.h>
#include "support/form.h"
#include "support/found.h"
#include "support/run_suite.h"
#include "support/turns.h"
#include "support/way.h"

enum { OVER_SETTINGS = 16, OVER_RUNS = 16 * 16 };

static const struct over_case *over_cases;
static char over_settings[OVER_SETTINGS][200];
static int over_n_settings, over_n_found, over_n_cases, over_n_runs;
static int over_n_shuffles; /* settings of btl_shuffle */
static unsigned over_flags;
static struct {
    int settings, which; /* a setting and a case, by number */
} over_runs[OVER_RUNS];

/* One rank of a case; r->arg is the run. A suite of OVER_PUTS is left out over a transport that was found and has no
 * puts. */
static void over_body(struct tw_rank *r)
{
    int settings = over_runs[(uintptr_t)r->arg].settings;
    const struct over_case *c = &over_cases[over_runs[(uintptr_t)r->arg].which];

    r->arg = over_settings[settings];
    if (over_flags & OVER_PUTS && settings < over_n_found && !way_puts(r, (r->rank + 1) % c->ranks)) {
        fprintf(stderr, "left out: the transport has no puts\n");
        return;
    }
    c->body(r);
}

START_TEST(over_one)
{
    const char *with = over_settings[over_runs[_i].settings];
    const struct over_case *c = &over_cases[over_runs[_i].which];
    fprintf(stderr, "run %s %s\n", with + strlen("btl="), c->name);
    tw_run(&(struct tw_options){.n = c->ranks, .settings = with, .level = c->level, .quiet = c->flags & OVER_QUIET},
           over_body, (void *)(uintptr_t)_i);
}
END_TEST

static bool over_is_shuffle(const char *with)
{
    return strncmp(with, "btl=shuffle", strlen("btl=shuffle")) == 0;
}

static void over_add(const char *with)
{
    CHECK(over_n_settings < OVER_SETTINGS);
    snprintf(over_settings[over_n_settings++], sizeof over_settings[0], "%s", with);
    over_n_shuffles += over_is_shuffle(with);
}

/* The runs of a setting. `turn`: its number among those that take turns, or -1. */
static void over_add_runs(int settings, int turn)
{
    const char *only = getenv("STRATA_CONFORMANCE");

    for (int c = 0; c < over_n_cases; c++) {
        char name[300];
        snprintf(name, sizeof name, "%s/%s", over_settings[settings], over_cases[c].name);
        if ((only && !strstr(name, only)) || !test_its_turn((size_t)c, turn, over_n_shuffles))
            continue;
        CHECK(over_n_runs < OVER_RUNS);
        over_runs[over_n_runs].settings = settings;
        over_runs[over_n_runs++].which = c;
    }
}

static void over_add_found(const char *name)
{
    char with[80];
    snprintf(with, sizeof with, "btl=%s,self", name);
    if (strcmp(name, "self") != 0)
        over_add(with);
}

/* `more`: further settings, NULL-terminated. Returns main's status. */
static int over_main(const char *suite, unsigned flags, const struct over_case *cases, int n, const char *const *more)
{
    over_flags = flags;
    over_cases = cases;
    over_n_cases = n;
    found_btls(over_add_found);
    over_n_found = over_n_settings;
    for (; *more; more++)
        over_add(*more);
    for (int i = 0, turn = 0; i < over_n_settings; i++)
        over_add_runs(i, flags & OVER_TURNS && test_turns() && over_is_shuffle(over_settings[i]) ? turn++ : -1);
    Suite *s = suite_create(suite);
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, over_one, 0, over_n_runs);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* Defines main, which runs `cases` over each transport that is found, and over further settings. `name` is the file's,
 * without _test.c; `flags`: OVER_PUTS, OVER_TURNS, or 0. */
#define OVER_SUITE(name, flags, cases, ...)                                                                            \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        static const char *const more[] = {__VA_ARGS__, NULL};                                                         \
        test_form_quick();                                                                                             \
        return over_main("conformance-" #name, flags, cases, (int)(sizeof(cases) / sizeof(cases)[0]), more);           \
    }                                                                                                                  \
    _Static_assert(1, "a semicolon follows")
#endif

#endif
