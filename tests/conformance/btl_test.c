/* The BTL contract, tested on every BTL component that strata-info finds, and on the ways of btl_shuffle. */
#include <check.h>
#include "support/btl_suite.h"
#include "support/form.h"
#include "support/found.h"
#include "support/run_suite.h"
#include "support/turns.h"

struct target {
    char name[32];
    char settings[200];
    bool only_self;
    int shuffle; /* its number among the settings of btl_shuffle, or -1 */
};

static struct target targets[32];
static int n_targets, n_shuffles;
static struct {
    const struct target *t;
    const struct btl_case *c;
} runs[1000];
static int n_runs;

START_TEST(one)
{
    fprintf(stderr, "run %s (%s) %s\n", runs[_i].t->name, runs[_i].t->settings, runs[_i].c->name);
    btl_case_run(runs[_i].c, runs[_i].t->name, runs[_i].t->settings, runs[_i].t->only_self);
}
END_TEST

static void add(const char *name, const char *settings, bool only_self)
{
    struct target *t = &targets[n_targets++];
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->settings, sizeof t->settings, "btl=%s%s%s", name, strcmp(name, "self") ? ",self" : "", settings);
    t->only_self = only_self;
    t->shuffle = strcmp(name, "shuffle") ? -1 : n_shuffles++;
}

static void add_one_found(const char *name)
{
    add(name, "", !strcmp(name, "self"));
}

/* `turns`: a case runs over one setting of btl_shuffle where test_turns() says so. */
static void add_cases(const struct btl_case *c, size_t n, bool turns)
{
    const char *only = getenv("STRATA_CONFORMANCE");
    char name[400];
    for (int t = 0; t < n_targets; t++)
        for (size_t i = 0; i < n; i++) {
            snprintf(name, sizeof name, "%.40s %.200s/%.40s", targets[t].name, targets[t].settings, c[i].name);
            if ((only && !strstr(name, only)) ||
                !test_its_turn(i, turns && test_turns() ? targets[t].shuffle : -1, n_shuffles))
                continue;
            runs[n_runs].t = &targets[t];
            runs[n_runs++].c = &c[i];
        }
}

int main(void)
{
    test_form_quick();
    found_btls(add_one_found);
    add("shuffle", " btl_shuffle_window=1 btl_shuffle_delay=0", false);
    add("shuffle", " btl_shuffle_needs_reg=1 btl_shuffle_again_percent=50 btl_shuffle_gather=0", false);
    add("shuffle", " btl_shuffle_unsupported_percent=10 btl_shuffle_window=1000 btl_shuffle_delay=20", false);
    add_cases(btl_am_cases, n_btl_am_cases, true);
    add_cases(btl_rdma_cases, n_btl_rdma_cases, false);
    add_cases(btl_life_cases, n_btl_life_cases, false);
    add_cases(btl_attribute_cases, n_btl_attribute_cases, false);
    add_cases(btl_capability_cases, n_btl_capability_cases, false);
    Suite *s = suite_create("conformance-btl");
    TCase *tc = tcase_create("btl");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, one, 0, n_runs);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
