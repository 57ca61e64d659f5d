/* Blocks of an alltoall in rounds: each is in one part of each round of its bits, at a place of its own. */
#include "rounds.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include "support/run_suite.h"

START_TEST(places_and_distances)
{
    for (int n = 2; n <= 70; n++)
        for (int k = 0; k < rounds_number(n); k++) {
            size_t all = arrival_rounds_before(n, k, k), with_bit = 0;
            for (int d = 1; d < n; d++)
                with_bit += d >> k & 1;
            ck_assert_uint_eq(all, with_bit);
            bool *seen = calloc(all, sizeof(*seen));
            ck_assert_ptr_nonnull(seen);
            for (int j = -1; j < k; j++) {
                ck_assert_uint_eq(arrival_rounds_before(n, k, j + 1),
                                  arrival_rounds_before(n, k, j) + arrival_rounds_part(n, k, j));
                for (size_t i = 0; i < arrival_rounds_part(n, k, j); i++) {
                    int d = arrival_rounds_distance(k, j, i);
                    size_t place = arrival_rounds_place(n, k, d);
                    ck_assert(d > 0 && d < n && d >> k & 1);
                    ck_assert_int_eq(rounds_part_of(d, k), j);
                    ck_assert_uint_eq(place, arrival_rounds_before(n, k, j) + i);
                    ck_assert(!seen[place]);
                    seen[place] = true;
                }
            }
            free(seen);
        }
}
END_TEST

/* The rounds of a block are the bits of its distance, from the lowest on. */
START_TEST(rounds_of_a_block)
{
    for (int d = 1; d < 300; d++) {
        int sum = 0, last = -1;
        for (int k = rounds_next(d, -1); k >= 0; k = rounds_next(d, k)) {
            ck_assert_int_gt(k, last);
            ck_assert_int_eq(rounds_part_of(d, k), last);
            last = k;
            sum += 1 << k;
        }
        ck_assert_int_eq(sum, d);
    }
}
END_TEST

START_TEST(number_of_rounds)
{
    static const int n[] = {1, 2, 3, 4, 5, 8, 9, 16}, rounds[] = {0, 1, 2, 2, 3, 3, 4, 4};
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++)
        ck_assert_int_eq(rounds_number(n[i]), rounds[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("rounds");
    TCase *tc = tcase_create("rounds");
    tcase_add_test(tc, places_and_distances);
    tcase_add_test(tc, rounds_of_a_block);
    tcase_add_test(tc, number_of_rounds);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
