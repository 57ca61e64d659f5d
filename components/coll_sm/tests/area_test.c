/* Areas: sealed, mapped by others by their name, there after their owner has gone. */
#define _GNU_SOURCE 1
#include "area.h"

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <strata/status.h>
#include "support/run_suite.h"

enum { HALF = 8192 };

START_TEST(mapped_and_left)
{
    struct own_area own;
    struct st_shared_name name;
    struct st_shared_mapping mapping;
    ck_assert_int_eq(cs_area_make(HALF, &own), STRATA_OK);
    ck_assert_uint_eq(own.bytes, AREA_HEAD + 2 * HALF);
    ck_assert_int_eq(st_shared_name_make(own.fd, 0, own.bytes, &name), STRATA_OK);
    ck_assert_int_eq(st_shared_map((uint32_t)getpid(), &name, &mapping), STRATA_OK);
    struct area *other = (struct area *)(void *)mapping.memory;
    ck_assert_uint_eq(atomic_load(&other->posted), 0);
    memset(area_half(own.at, HALF, 1), 7, HALF);
    atomic_store(&own.at->posted, 3);
    cs_area_drop(&own);
    ck_assert_ptr_null(own.at);
    ck_assert_uint_eq(atomic_load(&other->posted), 3);
    ck_assert_int_eq(area_half(other, HALF, 0)[HALF - 1], 0);
    ck_assert_int_eq(area_half(other, HALF, 1)[0], 7);
    ck_assert_int_eq(area_half(other, HALF, 7)[HALF - 1], 7);
    st_shared_unmap(&mapping);
    cs_area_drop(&own); /* nothing is left to drop */
}
END_TEST

/* Nobody makes it shorter under those that have mapped it. */
START_TEST(sealed)
{
    struct own_area own;
    struct stat st;
    ck_assert_int_eq(cs_area_make(HALF, &own), STRATA_OK);
    ck_assert_int_ne(ftruncate(own.fd, 0), 0);
    ck_assert_int_ne(ftruncate(own.fd, (off_t)own.bytes * 2), 0);
    ck_assert_int_eq(fstat(own.fd, &st), 0);
    ck_assert_uint_eq((size_t)st.st_size, own.bytes);
    ck_assert_uint_ge((size_t)st.st_blocks * 512, own.bytes); /* its pages are reserved */
    cs_area_drop(&own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coll_sm areas");
    TCase *tc = tcase_create("areas");
    tcase_add_test(tc, mapped_and_left);
    tcase_add_test(tc, sealed);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
