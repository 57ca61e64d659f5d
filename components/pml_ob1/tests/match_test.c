/* The matching engine alone: order, wildcards, cancelling and growth. match_differential_test
 * compares random operations with a naive list. */
/* one thread */
#include <limits.h>
#include <check.h>
#include <stdlib.h>
#include "match.h"
#include "support/run_suite.h"

struct item {
    struct ob1_posted posted;
    struct ob1_unexp unexp;
};

static struct ob1_match m;

static void setup(void)
{
    ck_assert_int_eq(ob1_match_init(&m), STRATA_OK);
}

static void teardown(void)
{
    ob1_match_destroy(&m);
}

static struct ob1_unexp *post(struct item *it, int src, int tag)
{
    struct ob1_unexp *u = NULL;
    ck_assert_int_eq(ob1_match_post(&m, &it->posted, src, tag, &u), STRATA_OK);
    return u;
}

static struct item *arrive(struct item *it, int src, int tag)
{
    struct ob1_posted *p = ob1_match_arrive(&m, src, tag);
    if (!p)
        ck_assert_int_eq(ob1_match_store(&m, &it->unexp, src, tag), STRATA_OK);
    return p ? ST_CONTAINER(p, struct item, posted) : NULL;
}

START_TEST(first_come_first_served)
{
    struct item r[4], a;
    ck_assert_ptr_null(post(&r[0], 1, 2));
    ck_assert_ptr_null(post(&r[1], -1, 2));
    ck_assert_ptr_null(post(&r[2], 1, -1));
    ck_assert_ptr_null(post(&r[3], -1, -1));
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_eq(arrive(&a, 1, 2), &r[i]);
    ck_assert_ptr_null(arrive(&a, 1, 2));
    ck_assert_uint_eq(m.n_wild, 0);
    ck_assert_uint_eq(m.n_unexpected, 1);
}
END_TEST

START_TEST(wildcards_do_not_match_others)
{
    struct item r[2], a[2];
    ck_assert_ptr_null(post(&r[0], -1, 7));
    ck_assert_ptr_null(post(&r[1], 3, -1));
    ck_assert_ptr_null(arrive(&a[0], 4, 8));
    ck_assert_ptr_eq(arrive(&a[1], 3, 8), &r[1]);
    ck_assert_ptr_eq(arrive(&a[1], 4, 7), &r[0]);
}
END_TEST

START_TEST(unexpected_in_order_of_arrival)
{
    struct item a[6], r;
    for (int i = 0; i < 6; i++)
        ck_assert_ptr_null(arrive(&a[i], i % 3, i / 3));
    ck_assert_ptr_eq(post(&r, -1, 1), &a[3].unexp); /* builds the indexes */
    ck_assert_ptr_eq(post(&r, 2, -1), &a[2].unexp);
    ck_assert_ptr_eq(post(&r, -1, -1), &a[0].unexp);
    ck_assert_ptr_null(arrive(&a[0], 5, 1));
    ck_assert_ptr_eq(post(&r, 1, 1), &a[4].unexp);
    ck_assert_ptr_eq(post(&r, -1, 1), &a[5].unexp);
    ck_assert_ptr_eq(post(&r, -1, 1), &a[0].unexp);
    ck_assert_ptr_eq(post(&r, -1, -1), &a[1].unexp);
    ck_assert_uint_eq(m.n_unexpected, 0);
}
END_TEST

START_TEST(cancelled_receives_do_not_match)
{
    struct item r[3], a;
    for (int i = 0; i < 3; i++)
        post(&r[i], i == 1 ? -1 : 0, 0);
    ob1_match_cancel(&m, &r[0].posted);
    ob1_match_cancel(&m, &r[1].posted);
    ck_assert_uint_eq(m.n_wild, 0);
    ck_assert_ptr_eq(arrive(&a, 0, 0), &r[2]);
}
END_TEST

/* A tag below -1 is matched by itself alone, and by any source; never by the wildcard tag. */
START_TEST(hidden_tags)
{
    struct item r[4], a[4];
    ck_assert_ptr_null(post(&r[0], -1, -1));
    ck_assert_ptr_null(post(&r[1], 1, -1));
    ck_assert_ptr_null(arrive(&a[0], 1, -17));
    ck_assert_ptr_null(arrive(&a[1], 2, -17));
    ck_assert_ptr_eq(arrive(&a[2], 1, 3), &r[0]);
    ck_assert_ptr_eq(arrive(&a[2], 1, 3), &r[1]);
    ck_assert_ptr_null(post(&r[0], -1, -1)); /* sees neither */
    ck_assert_ptr_null(post(&r[1], 2, -1));
    ck_assert_ptr_eq(post(&r[2], -1, -17), &a[0].unexp);
    ck_assert_ptr_eq(post(&r[2], 2, -17), &a[1].unexp);
    ck_assert_ptr_null(post(&r[2], -1, -18));
    ck_assert_ptr_eq(arrive(&a[3], 9, -18), &r[2]);
    ck_assert_uint_eq(m.n_unexpected, 0);
    arrive(&a[0], 1, -2);
    ck_assert_ptr_eq(ob1_match_any_unexpected(&m), &a[0].unexp);
}
END_TEST

/* Bins of keys that are not in use any more are given back when the table would grow. */
START_TEST(empty_bins_are_purged)
{
    struct item r, a;
    for (int i = 0; i < 100000; i++) {
        post(&r, 1, i);
        ck_assert_ptr_eq(arrive(&a, 1, i), &r);
    }
    ck_assert_uint_le(ob1_match_bytes(&m), 8192);
}
END_TEST

START_TEST(by_source_and_tear_down)
{
    struct item r[3], a;
    post(&r[0], 1, 0);
    post(&r[1], 2, -1);
    post(&r[2], -1, 3);
    ck_assert_ptr_null(ob1_match_any_posted(&m, 7, INT_MAX));
    ck_assert_ptr_eq(ob1_match_any_posted(&m, 2, INT_MAX), &r[1].posted);
    ck_assert_ptr_nonnull(ob1_match_any_posted(&m, -1, INT_MAX));
    ck_assert_ptr_null(ob1_match_any_unexpected(&m));
    arrive(&a, 9, 9);
    ck_assert_ptr_eq(ob1_match_any_unexpected(&m), &a.unexp);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_match");
    TCase *tc = tcase_create("match");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, first_come_first_served);
    tcase_add_test(tc, wildcards_do_not_match_others);
    tcase_add_test(tc, unexpected_in_order_of_arrival);
    tcase_add_test(tc, cancelled_receives_do_not_match);
    tcase_add_test(tc, hidden_tags);
    tcase_add_test(tc, empty_bins_are_purged);
    tcase_add_test(tc, by_source_and_tear_down);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
