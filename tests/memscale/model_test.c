/* strata-memscale's model: finds the sizes that made the figures, and lets noise make none. */
#include <check.h>
#include <stdlib.h>
#include "support/run_suite.h"
#include "tools/strata-memscale/model.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

enum { POINTS = 7, SET = 1 << MODEL_BASE | 1 << MODEL_RANK | 1 << MODEL_PEER | 1 << MODEL_LOG };

static struct model_point at(double n, double p)
{
    return (struct model_point){.x = {1, n, p, log2(1 + p), fmin(p, 16), 1 / n, fmin(66 * (n - 1), 8192)}};
}

static double far(const struct model *m, double n, double p)
{
    return model_bytes(m, at(n, p).x);
}

/* N = 2, 4, ... 128, P as `cap` says; `noise` is the relative error of every second one. */
static void make(struct model_point *points, const struct model *truth, double cap, double noise)
{
    for (int i = 0; i < POINTS; i++) {
        double n = (double)(2 << i), p = fmin(n - 1, cap);
        points[i] = at(n, p);
        points[i].bytes = model_bytes(truth, points[i].x) * (1 + (i % 2 ? noise : -noise));
    }
}

static void expect_near(double got, double want, double within)
{
    ck_assert_msg(fabs(got - want) <= within * fabs(want) + 1e-6, "%g instead of %g", got, want);
}

START_TEST(finds_peers)
{
    const struct model truth = {.size = {2e6, 0, 30e3, 0}};
    struct model_point points[POINTS];
    struct model m;

    make(points, &truth, 1e9, 0);
    ck_assert(model_fit(&m, SET, points, POINTS));
    expect_near(far(&m, 1e6, 1e6 - 1), far(&truth, 1e6, 1e6 - 1), 1e-3);
}
END_TEST

START_TEST(finds_logarithm)
{
    const struct model truth = {.size = {1e6, 0, 5e3, 200e3}};
    struct model_point points[POINTS];
    struct model m;

    make(points, &truth, 1e9, 0);
    ck_assert(model_fit(&m, SET, points, POINTS));
    expect_near(m.size[MODEL_LOG], 200e3, 0.01);
    expect_near(far(&m, 1e5, 1e5 - 1), far(&truth, 1e5, 1e5 - 1), 0.01);
}
END_TEST

/* max_connected_peers: what a rank costs that is known and not connected. */
START_TEST(tells_ranks_from_peers)
{
    const struct model truth = {.size = {1e6, 3e3, 30e3, 0}};
    struct model_point points[POINTS];
    struct model m;

    make(points, &truth, 13, 0);
    ck_assert(model_fit(&m, SET, points, POINTS));
    expect_near(m.size[MODEL_RANK], 3e3, 0.01);
    expect_near(m.size[MODEL_PEER], 30e3, 0.01);
}
END_TEST

START_TEST(noise_makes_no_term)
{
    const struct model truth = {.size = {2e6, 0, 0, 0}};
    struct model_point points[POINTS];
    struct model m;

    make(points, &truth, 0, 0.01);
    ck_assert(model_fit(&m, SET, points, POINTS));
    expect_near(far(&m, 1e6, 0), 2e6, 0.02);
}
END_TEST

START_TEST(sizes_are_not_negative)
{
    struct model_point points[POINTS];
    struct model m;

    for (int i = 0; i < POINTS; i++) {
        points[i] = at(2 << i, (2 << i) - 1);
        points[i].bytes = 1e6 - 1e3 * (2 << i);
    }
    ck_assert(model_fit(&m, SET, points, POINTS));
    for (int t = 0; t < MODEL_TERMS; t++)
        ck_assert_double_ge(m.size[t], 0);
}
END_TEST

START_TEST(one_point_is_no_model)
{
    const struct model_point point = {.x = {1, 2, 1}, .bytes = 1e6};
    struct model m;

    ck_assert(!model_fit(&m, SET, &point, 1));
    ck_assert(!model_fit(&m, SET, &point, 0));
}
END_TEST

/* A part that a configuration does not have: sm has no device. */
START_TEST(nothing_stays_nothing)
{
    struct model_point points[POINTS];
    struct model m;

    for (int i = 0; i < POINTS; i++)
        points[i] = at(2 << i, (2 << i) - 1);
    ck_assert(model_fit(&m, SET, points, POINTS));
    ck_assert_double_eq(far(&m, 1e6, 1e6), 0);
}
END_TEST

/* Rings for 16 peers only: the line goes on as that of the others. */
START_TEST(rings_end)
{
    const struct model truth = {.size = {1e6, 0, 5e3, 0, 66e3, 0}};
    struct model_point points[POINTS];
    struct model m;

    make(points, &truth, 1e9, 0);
    ck_assert(model_fit(&m, MODEL_ALL_TERMS & ~(1 << MODEL_RANK | 1 << MODEL_QUEUE | 1 << MODEL_EACH), points, POINTS));
    expect_near(m.size[MODEL_RING], 66e3, 0.01);
    expect_near(far(&m, 1e5, 1e5 - 1), far(&truth, 1e5, 1e5 - 1), 0.01);
}
END_TEST

/* Nothing but what is allowed. */
START_TEST(terms_are_kept_out)
{
    const struct model truth = {.size = {1e6, 0, 5e3, 0, 0, 0}};
    struct model_point points[POINTS];
    struct model m;

    make(points, &truth, 1e9, 0);
    ck_assert(model_fit(&m, 1 << MODEL_BASE | 1 << MODEL_LOG, points, POINTS));
    ck_assert_double_eq(m.size[MODEL_PEER], 0);
}
END_TEST

/* Five points of a curve between a line and a logarithm, as pages make it. */
START_TEST(logarithm_needs_peers)
{
    static const double kb[] = {2610, 2800, 2992, 3244, 3703};
    struct model_point points[5];
    struct model m;

    for (int i = 0; i < 5; i++) {
        points[i] = at(2 << i, (2 << i) - 1);
        points[i].bytes = kb[i] * 1e3;
    }
    ck_assert(model_fit(&m, SET, points, 5));
    ck_assert(m.size[MODEL_PEER] + m.size[MODEL_RANK] > 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memscale_model");
    TCase *tc = tcase_create("fit");

    tcase_add_test(tc, finds_peers);
    tcase_add_test(tc, finds_logarithm);
    tcase_add_test(tc, tells_ranks_from_peers);
    tcase_add_test(tc, noise_makes_no_term);
    tcase_add_test(tc, sizes_are_not_negative);
    tcase_add_test(tc, one_point_is_no_model);
    tcase_add_test(tc, nothing_stays_nothing);
    tcase_add_test(tc, rings_end);
    tcase_add_test(tc, terms_are_kept_out);
    tcase_add_test(tc, logarithm_needs_peers);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
