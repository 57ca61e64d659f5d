/* Names on the wire: only the name that was given out last finds an object, and only as what it is. */
#include <check.h>
#include <strata/sdk/wire_ids.h>
#include "support/run_suite.h"

enum { APPLE = 1, PEAR };

START_TEST(ids_are_not_reused_at_once)
{
    struct st_wire_ids ids = {0};
    uint64_t id[100];
    int object[100];
    ck_assert_ptr_null(st_wire_id_find(&ids, APPLE, 0));
    for (int i = 0; i < 100; i++) {
        id[i] = st_wire_id_get(&ids, APPLE, &object[i]);
        ck_assert_uint_ne(id[i], 0);
    }
    for (int i = 0; i < 100; i++) {
        ck_assert_ptr_eq(st_wire_id_find(&ids, APPLE, id[i]), &object[i]);
        ck_assert_ptr_null(st_wire_id_find(&ids, PEAR, id[i]));
        ck_assert_ptr_null(st_wire_id_find(&ids, APPLE, id[i] + (1ull << 32)));
    }
    st_wire_id_put(&ids, id[5]);
    st_wire_id_put(&ids, id[5]); /* a second time: nothing happens */
    ck_assert_ptr_null(st_wire_id_find(&ids, APPLE, id[5]));
    uint64_t again = st_wire_id_get(&ids, PEAR, &object[5]);
    ck_assert_uint_ne(again, id[5]);
    ck_assert_ptr_null(st_wire_id_find(&ids, APPLE, id[5]));
    ck_assert_ptr_eq(st_wire_id_find(&ids, PEAR, again), &object[5]);
    ck_assert_ptr_null(st_wire_id_find(&ids, PEAR, UINT64_MAX));
    st_wire_ids_destroy(&ids);
}
END_TEST

/* A peer keeps a name over any number of others in the same slot. */
START_TEST(stale_names_find_nothing)
{
    struct st_wire_ids ids = {0};
    int object;
    uint64_t first = st_wire_id_get(&ids, APPLE, &object), last = first;

    for (int i = 0; i < 1000; i++) {
        st_wire_id_put(&ids, last);
        last = st_wire_id_get(&ids, APPLE, &object);
        ck_assert_ptr_null(st_wire_id_find(&ids, APPLE, first));
        ck_assert_ptr_eq(st_wire_id_find(&ids, APPLE, last), &object);
    }
    st_wire_id_put(&ids, first); /* nothing happens */
    st_wire_id_put(&ids, 0);
    ck_assert_ptr_eq(st_wire_id_find(&ids, APPLE, last), &object);
    ck_assert_uint_le(ids.n, 16);
    st_wire_ids_destroy(&ids);
    ck_assert_ptr_null(st_wire_id_find(&ids, APPLE, last));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_ids");
    TCase *tc = tcase_create("wire_ids");

    tcase_add_test(tc, ids_are_not_reused_at_once);
    tcase_add_test(tc, stale_names_find_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
