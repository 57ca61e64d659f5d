/* A user's table of forms: what is read, and what is refused with the line's number. */
#include "table.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/run_suite.h"
#include "support/world.h"

static char why[256];
static struct arrival_rule *rules;
static size_t n_rules;

static int read_table(const char *text)
{
    char path[] = "/tmp/strata-table.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    rules = NULL;
    n_rules = 0;
    int rc = arrival_table_read(path, &rules, &n_rules, why, sizeof(why));
    unlink(path);
    return rc;
}

START_TEST(lines_are_read)
{
    ck_assert_int_eq(read_table("# forms\n\nalltoall 16 4 512 500 pap_shm_direct # short\nbcast - - 65536 - next\n"
                                "barrier 8 - - - direct\n"),
                     STRATA_OK);
    ck_assert_uint_eq(n_rules, 3);
    ck_assert(rules[0].kind == STRATA_ALLTOALL && rules[0].ranks == 16 && rules[0].nodes == 4 &&
              rules[0].bytes == 512 && rules[0].skew_us == 500 && rules[0].form == FORM_PAP_SHM_DIRECT);
    ck_assert(rules[1].kind == STRATA_BCAST && rules[1].ranks == INT_MAX && rules[1].bytes == 65536 &&
              rules[1].skew_us == UINT64_MAX && rules[1].form == FORM_NEXT);
    ck_assert(rules[2].bytes == SIZE_MAX && rules[2].form == FORM_DIRECT);
    free(rules);
}
END_TEST

START_TEST(every_form_but_auto_has_a_name)
{
    for (int i = 0; i < ARRIVAL_FORMS; i++) {
        char line[64];
        snprintf(line, sizeof(line), "alltoall - - - - %s\n", arrival_forms[i]);
        ck_assert_int_eq(read_table(line), i == FORM_AUTO ? STRATA_ERR_PARAM : STRATA_OK);
        if (i != FORM_AUTO)
            ck_assert_int_eq((int)rules[0].form, i);
        free(rules);
    }
    ck_assert_ptr_null(arrival_forms[ARRIVAL_FORMS]);
}
END_TEST

START_TEST(wrong_lines_are_refused)
{
    static const char *const lines[] = {"scan - - - - direct",
                                        "alltoall - - - - tree",
                                        "alltoall 0 - - - direct",
                                        "alltoall - 0 - - direct",
                                        "alltoall 2x - - - direct",
                                        "alltoall - - -1 - direct",
                                        "alltoall - - - 2000000000 direct",
                                        "alltoall - - - direct",
                                        "alltoall - - - - direct more",
                                        "bcast - 4 - - next",
                                        "bcast - - - 100 next",
                                        "alltoall 99999999999999999999 - - - direct"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "barrier - - - - direct\n%s\n", lines[i]);
        ck_assert_msg(read_table(text) == STRATA_ERR_PARAM, "%s", lines[i]);
        ck_assert_msg(strstr(why, "line 2:") != NULL && rules == NULL && n_rules == 0, "%s: %s", lines[i], why);
    }
    ck_assert_int_eq(arrival_table_read("/nowhere/table", &rules, &n_rules, why, sizeof(why)), STRATA_ERR_PARAM);
    ck_assert_ptr_nonnull(strstr(why, "/nowhere/table cannot be read"));
}
END_TEST

/* A rank that cannot read the table does not begin: it would choose otherwise than the others. */
START_TEST(no_table_no_start)
{
    static const char *const settings[] = {"btl=self coll_arrival_table=/nowhere/table",
                                           "btl=self coll=sm,arrival,basic coll_arrival_table=/nowhere/table"};
    char err[1024] = "";
    strata_t *s;
    struct tw_world *world = tw_create(&(struct tw_options){.n = 1, .settings = settings[_i], .quiet = true});
    ck_assert_int_eq(tw_init(world, 0, &s, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_ptr_nonnull(strstr(err, "framework coll"));
    tw_destroy(world);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table");
    TCase *tc = tcase_create("table");
    tcase_add_test(tc, lines_are_read);
    tcase_add_test(tc, every_form_but_auto_has_a_name);
    tcase_add_test(tc, wrong_lines_are_refused);
    tcase_add_loop_test(tc, no_table_no_start, 0, 2);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
