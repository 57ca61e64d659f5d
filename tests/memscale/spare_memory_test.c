/* Memory that strata-memscale and strata-miba take, where control groups limit it. */
#define _GNU_SOURCE 1
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/run_suite.h"
#include "tools/shared/spare_memory.c" /* NOLINT(bugprone-suspicious-include): tools have no library for tests */

static char root[] = "/tmp/strata-spare-test.XXXXXX";

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

static void put_file(const char *name, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + sizeof root, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* Of a group in either version's hierarchy. */
static void put(const char *group, const char *file, const char *text)
{
    char name[200];

    snprintf(name, sizeof name, "sys/fs/cgroup%s/%s", group, file);
    put_file(name, text);
}

static uint64_t left(const char *lines)
{
    put_file("proc/self/cgroup", lines);
    return spare_memory(root);
}

START_TEST(no_limit)
{
    put("/job", "memory.max", "max\n");
    put("/job", "memory.current", "1000\n");
    ck_assert(left("0::/job\n") == UINT64_MAX);
    ck_assert(left("0::/\n1:name=systemd:/job\n2:cpu,cpuacct:/job\n") == UINT64_MAX);
    ck_assert(left("nonsense\n") == UINT64_MAX);
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
    ck_assert_uint_eq(left("0::/job/step\n"), 700000);
    put("/job/step", "memory.max", "500000\n");
    ck_assert_uint_eq(left("0::/job/step\n"), 200000);
    put("/job/step", "memory.max", "200000\n");
    ck_assert_uint_eq(left("0::/job/step\n"), 0);
}
END_TEST

/* A container sees its own group as the root, also where its path has others. */
START_TEST(limit_of_a_container)
{
    put("", "memory.max", "8000000\n");
    put("", "memory.current", "1000000\n");
    ck_assert_uint_eq(left("0::/\n"), 7000000);
    ck_assert_uint_eq(left("0::/nowhere/at/all\n"), 7000000);
}
END_TEST

START_TEST(first_version)
{
    put("/memory/job", "memory.limit_in_bytes", "600000\n");
    put("/memory/job", "memory.usage_in_bytes", "200000\n");
    put("/memory/job", "memory.stat", "inactive_file 1\ntotal_inactive_file 50000\n");
    ck_assert_uint_eq(left("9:cpuset:/job\n4:memory:/job\n0::/job\n"), 450000);
}
END_TEST

/* The least of what the machine and the process's control groups have, of both versions. */
START_TEST(memory_of_groups)
{
    ck_assert(spare_memory(root) == UINT64_MAX);
    put_file("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
    ck_assert_uint_eq(spare_memory(root), 8000 * 1024);
    put_file("proc/self/cgroup", "4:cpu:/x\n1:memory:/a\n0::/b/c\n");
    ck_assert_uint_eq(spare_memory(root), 8000 * 1024);
    put_file("sys/fs/cgroup/b/c/memory.max", "max\n");
    put_file("sys/fs/cgroup/b/c/memory.current", "1000\n");
    put_file("sys/fs/cgroup/b/memory.max", "5000000\n");
    put_file("sys/fs/cgroup/b/memory.current", "3000000\n");
    put_file("sys/fs/cgroup/b/memory.stat", "anon 1\ninactive_file 500000\n");
    ck_assert_uint_eq(spare_memory(root), 2500000);
    put_file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4000000\n");
    put_file("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2000000\n");
    ck_assert_uint_eq(spare_memory(root), 2000000);
    /* A container's own group is its root, whatever its name is outside. */
    put_file("proc/self/cgroup", "1:memory:/elsewhere\n");
    put_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "100\n");
    put_file("sys/fs/cgroup/memory/memory.usage_in_bytes", "200\n");
    ck_assert_uint_eq(spare_memory(root), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spare_memory");
    TCase *tc = tcase_create("control groups");

    tcase_add_checked_fixture(tc, make_root, drop_root);
    tcase_add_test(tc, no_limit);
    tcase_add_test(tc, limit_of_a_group_above);
    tcase_add_test(tc, limit_of_a_container);
    tcase_add_test(tc, first_version);
    tcase_add_test(tc, memory_of_groups);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
