/* Objects ahead of their turn come out in sequence, whatever the order in which they came, and nothing is left. */
#include <check.h>
#include <stdlib.h>
#include <strata/sdk/reorder.h>
#include "support/random.h"
#include "support/run_suite.h"

static char objects[65536];

START_TEST(any_order_in_sequence)
{
    struct rnd rnd = {7};
    struct st_reorder *r = NULL;
    uint16_t next = 65500, order[300];

    for (int round = 0; round < 500; round++) {
        uint32_t n = 1 + rnd_below(&rnd, 300), taken = 0;
        for (uint32_t i = 0; i < n; i++)
            order[i] = (uint16_t)(next + i);
        for (uint32_t i = n; i-- > 1;) {
            uint32_t k = rnd_below(&rnd, i + 1);
            uint16_t t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
        for (uint32_t i = 0; i < n; i++) {
            void *got;
            if (order[i] != next) {
                ck_assert_int_eq(st_reorder_insert(&r, next, order[i], &objects[order[i]]), STRATA_OK);
                continue;
            }
            next++, taken++;
            while ((got = st_reorder_take(&r, next)) != NULL) {
                ck_assert_ptr_eq(got, &objects[next]);
                next++, taken++;
            }
        }
        ck_assert_uint_eq(taken, n);
        ck_assert_ptr_null(r); /* freed with the last one */
    }
}
END_TEST

START_TEST(stale_and_doubled_are_refused)
{
    struct st_reorder *r = NULL;

    ck_assert_int_eq(st_reorder_insert(&r, 10, 10, objects), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(st_reorder_insert(&r, 10, 9, objects), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(st_reorder_insert(&r, 10, (uint16_t)(10 + ST_REORDER_WINDOW), objects), STRATA_ERR_PROTOCOL);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(st_reorder_insert(&r, 10, (uint16_t)(9 + ST_REORDER_WINDOW), objects), STRATA_OK);
    ck_assert_int_eq(st_reorder_insert(&r, 10, (uint16_t)(9 + ST_REORDER_WINDOW), objects), STRATA_ERR_PROTOCOL);
    ck_assert_uint_eq(r->n, 1);
    ck_assert_ptr_null(st_reorder_take(&r, 10));
    ck_assert_ptr_eq(st_reorder_take(&r, (uint16_t)(9 + ST_REORDER_WINDOW)), objects);
    ck_assert_ptr_null(r);
    ck_assert_ptr_null(st_reorder_take(&r, 10));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reorder");
    TCase *tc = tcase_create("reorder");

    tcase_add_test(tc, any_order_in_sequence);
    tcase_add_test(tc, stale_and_doubled_are_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
