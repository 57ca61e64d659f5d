/* The tree of a reduction: every order of arrival combines the same operands in the order of ranks, and little is left
 * when the last block comes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "op.h"
#include "support/random.h"
#include "support/run_suite.h"

enum { MOST = 9, TEXT = 64 };

struct text {
    char is[TEXT];
};

static int combinations;

/* "(left right)": the result tells the shape. */
static void pair(void *arg, const void *in, void *inout, size_t count)
{
    const struct text *a = in;
    struct text *b = inout, both;
    ck_assert_ptr_null(arg);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_lt(snprintf(both.is, TEXT, "(%.28s%.28s)", a->is, b->is), TEXT);
    *b = both;
    combinations++;
}

static void run(int n, const int *order, struct text *result, int *last)
{
    struct slot slot = {.n = n};
    struct op op = {.slot = &slot};
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLREDUCE);
    c.element = sizeof(struct text);
    c.reduce = pair;
    ck_assert_int_eq(arrival_combine_make(&op, &c, 1), STRATA_OK);
    combinations = 0;
    for (int i = 0; i < n; i++) {
        int before = combinations;
        snprintf(op.parts + (size_t)order[i] * sizeof(struct text), TEXT, "%d", order[i]);
        arrival_combine(&op, order[i]);
        *last = combinations - before;
    }
    ck_assert_int_eq(combinations, n - 1);
    memcpy(result, arrival_combined(&op), sizeof(*result));
    free(op.parts);
    free(op.have);
}

START_TEST(any_order_of_arrival)
{
    struct rnd r = {28};
    for (int n = 1; n <= MOST; n++) {
        int order[MOST], last, levels = 0, digits = 0;
        struct text first, other;
        for (int i = 0; i < n; i++)
            order[i] = i;
        run(n, order, &first, &last);
        for (const char *c = first.is; *c; c++)
            if (*c >= '0' && *c <= '9')
                ck_assert_int_eq(*c - '0', digits++);
        ck_assert_int_eq(digits, n);
        while (1 << levels < n)
            levels++;
        for (int turn = 0; turn < 200; turn++) {
            for (int i = n - 1; i > 0; i--) {
                int k = (int)rnd_below(&r, (uint32_t)i + 1), swap = order[i];
                order[i] = order[k];
                order[k] = swap;
            }
            run(n, order, &other, &last);
            ck_assert_str_eq(first.is, other.is);
            ck_assert_int_le(last, levels);
        }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("combine");
    TCase *tc = tcase_create("combine");
    tcase_add_test(tc, any_order_of_arrival);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
