/* Memory that strata-memscale lets a job take, where control groups limit it. */
#define _GNU_SOURCE 1
#include <check.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/run_suite.h"
#include "tools/strata-memscale/room.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

static char root[] = "/tmp/strata-room-test.XXXXXX";

static void make_root(void)
{
    strcpy(root + sizeof root - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void drop_root(void)
{
    char command[100];

    snprintf(command, sizeof command, "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *group, const char *file, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s%s", root, group);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static double left(const char *lines)
{
    char copy[200];

    snprintf(copy, sizeof copy, "%s", lines);
    FILE *f = fmemopen(copy, strlen(copy), "r");
    ck_assert_ptr_nonnull(f);
    const double bytes = control_groups_leave(f, root, root);
    fclose(f);
    return bytes;
}

START_TEST(no_limit)
{
    put("/job", "memory.max", "max\n");
    put("/job", "memory.current", "1000\n");
    ck_assert(isinf(left("0::/job\n")));
    ck_assert(isinf(left("0::/\n1:name=systemd:/job\n2:cpu,cpuacct:/job\n")));
    ck_assert(isinf(left("nonsense\n")));
}
END_TEST

/* The group of a step has no limit, that of its job has; a cache of files is given back. */
START_TEST(limit_of_a_group_above)
{
    put("/job", "memory.max", "1000000\n");
    put("/job", "memory.current", "400000\n");
    put("/job", "memory.stat", "anon 300000\ninactive_file 100000\nactive_file 0\n");
    put("/job/step", "memory.max", "max\n");
    put("/job/step", "memory.current", "300000\n");
    ck_assert_double_eq(left("0::/job/step\n"), 700000);
    put("/job/step", "memory.max", "500000\n");
    ck_assert_double_eq(left("0::/job/step\n"), 200000);
    put("/job/step", "memory.max", "200000\n");
    ck_assert_double_eq(left("0::/job/step\n"), 0);
}
END_TEST

/* A container sees its own group as the root, also where its path has others. */
START_TEST(limit_of_a_container)
{
    put("", "memory.max", "8000000\n");
    put("", "memory.current", "1000000\n");
    ck_assert_double_eq(left("0::/\n"), 7000000);
    ck_assert_double_eq(left("0::/nowhere/at/all\n"), 7000000);
}
END_TEST

START_TEST(first_version)
{
    put("/job", "memory.limit_in_bytes", "600000\n");
    put("/job", "memory.usage_in_bytes", "200000\n");
    put("/job", "memory.stat", "inactive_file 1\ntotal_inactive_file 50000\n");
    ck_assert_double_eq(left("9:cpuset:/job\n4:memory:/job\n0::/job\n"), 450000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memscale_room");
    TCase *tc = tcase_create("control groups");

    tcase_add_checked_fixture(tc, make_root, drop_root);
    tcase_add_test(tc, no_limit);
    tcase_add_test(tc, limit_of_a_group_above);
    tcase_add_test(tc, limit_of_a_container);
    tcase_add_test(tc, first_version);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
