/* Which ports of two processes correspond, when not all can be used at both. */
#include <check.h>
#include <stdlib.h>
#include "device/device.h"
#include "support/run_suite.h"

static const struct {
    uint64_t ours, theirs;
    uint32_t place;
    int match;
} cases[] = {
    {3, 3, 0, 0},
    {3, 3, 1, 1}, /* all are there */
    {3, 2, 0, -1},
    {3, 2, 1, 1}, /* they lack their first */
    {2, 3, 1, 1}, /* or we lack ours */
    {1, 2, 0, 1},
    {2, 1, 1, 0}, /* each has another one only */
    {5, 6, 2, 2},
    {5, 6, 0, 1}, /* one in common, and one of each */
    {0xb, 0x4, 0, 2},
    {0xb, 0x4, 1, -1}, /* the first of ours that is left over */
    {1, 0, 0, -1},     /* a card may say anything */
    {1ull << 63, 1ull << 63, 63, 63},
    {1ull << 63, 1, 63, 0},
};

START_TEST(known)
{
    ck_assert_int_eq(ib_rail_match(cases[_i].ours, cases[_i].theirs, cases[_i].place), cases[_i].match);
}
END_TEST

/* As many pairs as the one with fewer has ports, and both sides agree. */
START_TEST(both_agree)
{
    for (uint64_t a = 1; a < 64; a++)
        for (uint64_t b = 1; b < 64; b++) {
            int pairs = 0, n_a = __builtin_popcountll(a), n_b = __builtin_popcountll(b);
            for (uint32_t i = 0; i < 6; i++) {
                int match = a >> i & 1 ? ib_rail_match(a, b, i) : -1;
                if (match < 0)
                    continue;
                pairs++;
                ck_assert(b >> match & 1);
                ck_assert_int_eq(ib_rail_match(b, a, (uint32_t)match), (int)i);
            }
            ck_assert_int_eq(pairs, n_a < n_b ? n_a : n_b);
        }
}
END_TEST

START_TEST(numbers)
{
    ck_assert_uint_eq(ib_rail_number(0xb, 0), 0);
    ck_assert_uint_eq(ib_rail_number(0xb, 1), 1);
    ck_assert_uint_eq(ib_rail_number(0xb, 3), 2);
    ck_assert_uint_eq(ib_rail_number(~0ull, 63), 63);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("which ports correspond");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, known, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(t, both_agree);
    tcase_add_test(t, numbers);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
