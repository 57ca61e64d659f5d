/* Whether a verbs device may be there, told from folders made up here. */
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "params.h"
#include "support/run_suite.h"

/* softhca's devices are in no folder, but it is preloaded to libibverbs; which is linked in where components are. */
START_TEST(libibverbs_is_asked_where_it_is)
{
    if (!dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD))
        ck_assert(!ib_may_be_present("/nonexistent", "/nonexistent"));
    ck_assert_ptr_nonnull(dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL));
    ck_assert(ib_may_be_present("/nonexistent", "/nonexistent"));
}
END_TEST

static void present_by_folder(const char *name, bool expected)
{
    char folder[] = "/tmp/present_test.XXXXXX", entry[64];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(entry, sizeof entry, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(entry, 0700), 0);
    ck_assert_int_eq(ib_uverbs_in(folder), expected);
    ck_assert_int_eq(rmdir(entry), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(devices_are_told_from_other_entries)
{
    present_by_folder("uverbs0", true);
    present_by_folder("uverbs12", true);
    present_by_folder("abi_version", false);
    present_by_folder("rdma_cm", false);
    ck_assert(!ib_uverbs_in("/nonexistent"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("present");
    TCase *t = tcase_create("present");

    tcase_add_test(t, libibverbs_is_asked_where_it_is);
    tcase_add_test(t, devices_are_told_from_other_entries);
    suite_add_tcase(s, t);
    return run_suite(s);
}
