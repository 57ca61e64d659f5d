/* The slab free list. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/slab.h>
#include "support/run_suite.h"

START_TEST(rejects_bad_shapes)
{
    struct st_slab s;
    ck_assert_int_eq(st_slab_init(&s, 0, 8, 4, 0), STRATA_ERR_ARG);
    ck_assert_int_eq(st_slab_init(&s, 8, 4, 4, 0), STRATA_ERR_ARG);
    ck_assert_int_eq(st_slab_init(&s, 8, 24, 4, 0), STRATA_ERR_ARG);
    ck_assert_int_eq(st_slab_init(&s, 8, 8, 0, 0), STRATA_ERR_ARG);
}
END_TEST

START_TEST(grows_aligned_and_reuses)
{
    struct st_slab s;
    unsigned char *p[100];
    ck_assert_int_eq(st_slab_init(&s, 70, 64, 8, 0), STRATA_OK);
    ck_assert_uint_eq(st_slab_bytes(&s), 0);
    for (int i = 0; i < 100; i++) {
        p[i] = st_slab_get(&s);
        ck_assert_ptr_nonnull(p[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % 64, 0);
        memset(p[i], i, 70);
    }
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 70; k++)
            ck_assert_int_eq(p[i][k], i);
    ck_assert_uint_eq(s.in_use, 100);
    ck_assert_uint_eq(s.made, 104);
    ck_assert_uint_ge(st_slab_bytes(&s), 104 * 128);
    st_slab_put(&s, p[7]);
    ck_assert_ptr_eq(st_slab_get(&s), p[7]);
    for (int i = 0; i < 100; i++)
        st_slab_put(&s, p[i]);
    ck_assert_uint_eq(s.in_use, 0);
    st_slab_destroy(&s);
    ck_assert_uint_eq(st_slab_bytes(&s), 0);
}
END_TEST

START_TEST(stops_at_the_limit)
{
    struct st_slab s;
    ck_assert_int_eq(st_slab_init(&s, 16, 8, 4, 6), STRATA_OK);
    void *last = NULL;
    for (int i = 0; i < 6; i++)
        ck_assert_ptr_nonnull(last = st_slab_get(&s));
    ck_assert_ptr_null(st_slab_get(&s));
    st_slab_put(&s, last);
    ck_assert_ptr_eq(st_slab_get(&s), last);
    ck_assert_uint_eq(s.made, 6);
    st_slab_destroy(&s);
}
END_TEST

START_TEST(survives_sizes_that_overflow)
{
    struct st_slab s;
    ck_assert_int_eq(st_slab_init(&s, SIZE_MAX / 4, 8, 16, 0), STRATA_OK);
    ck_assert_ptr_null(st_slab_get(&s));
    st_slab_destroy(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slab");
    TCase *t = tcase_create("all");
    tcase_add_test(t, rejects_bad_shapes);
    tcase_add_test(t, grows_aligned_and_reuses);
    tcase_add_test(t, stops_at_the_limit);
    tcase_add_test(t, survives_sizes_that_overflow);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
