#include "support/cases.h"
#include "support/device.h"
#include "differences.h"

#include <check.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { SAFETY_NET_S = 600 }; /* ends a case that hangs; longer than any time_limit */

static const struct verbs_case *table;

START_TEST(one)
{
    /* A forked peer that outlives a failed case would hold the runner's pipe open. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    table[_i].run();
}
END_TEST

int repetitions(int n)
{
    const char *percent = getenv("VERBS_REPETITIONS");
    int fewer = percent ? n * atoi(percent) / 100 : n;
    return fewer > 0 ? fewer : 1;
}

static const char *known_difference(const char *kind, const char *program, const char *name)
{
    char full[160];
    snprintf(full, sizeof full, "%s/%s", program, name);
    if (getenv("VERBS_RUN_DIFFERENCES"))
        return NULL;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (!strcmp(differences[i].kind, kind) && !strcmp(differences[i].name, full))
            return differences[i].reason;
    return NULL;
}

static void print_result(const char *program, TestResult *r)
{
    const char *message = tr_msg(r);
    if (tr_rtype(r) == CK_PASS)
        printf("PASS %s/%s\n", program, tr_tcname(r));
    else
        printf("FAIL %s/%s: %s:%d: %s\n", program, tr_tcname(r), tr_lfile(r) ? tr_lfile(r) : "?", tr_lno(r),
               message ? message : "");
}

int verbs_main(const char *program, const struct verbs_case *cases, size_t n)
{
    const char *only = getenv("VERBS_CASE");
    char kind[64], why[200];
    if (!device_kind(kind, sizeof kind, why, sizeof why)) {
        printf("SKIP %s: %s\n", program, why);
        return 77;
    }
    table = cases;
    Suite *s = suite_create(program);
    int skipped = 0;
    for (size_t i = 0; i < n; i++) {
        if (only && fnmatch(only, cases[i].name, 0))
            continue;
        const char *reason = known_difference(kind, program, cases[i].name);
        if (reason) {
            printf("SKIP %s/%s: %s\n", program, cases[i].name, reason);
            skipped++;
            continue;
        }
        TCase *tc = tcase_create(cases[i].name);
        tcase_set_timeout(tc, SAFETY_NET_S);
        tcase_add_loop_test(tc, one, (int)i, (int)i + 1);
        suite_add_tcase(s, tc);
    }
    fflush(stdout);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_SILENT);
    int run = srunner_ntests_run(sr), failed = srunner_ntests_failed(sr);
    TestResult **results = srunner_results(sr);
    for (int i = 0; i < run; i++)
        print_result(program, results[i]);
    free(results);
    srunner_free(sr);
    printf("TOTAL %s on %s: %d passed, %d failed, %d skipped\n", program, kind, run - failed, failed, skipped);
    return failed ? 1 : 0;
}
