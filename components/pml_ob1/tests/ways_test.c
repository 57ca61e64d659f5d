/* The table of ways for reports: at each length the same answer as the chooser gives, in every class of traffic. */
#include <check.h>
#include <string.h>
#include "support/run_suite.h"
#include "ways.h"

static struct ob1_ways_of typical(void)
{
    return (struct ob1_ways_of){.wanted = OB1_RNDV_AUTO,
                                .caps = ST_BTL_GET | ST_BTL_PUT,
                                .limits = {.eager_limit = 4096,
                                           .stream_limit = 65536,
                                           .zcopy_min = UINT32_MAX,
                                           .rdma_min = 131072,
                                           .split_min = 524288,
                                           .alone_min = 10000,
                                           .alone_split_min = 262144}};
}

static void check_step(const struct ob1_way_step *s, uint64_t from, enum ob1_protocol start, enum ob1_protocol answer,
                       const char *limit)
{
    ck_assert_uint_eq(s->from, from);
    ck_assert_int_eq(s->start, start);
    ck_assert_int_eq(s->answer, answer);
    if (limit)
        ck_assert_str_eq(s->limit, limit);
    else
        ck_assert_ptr_null(s->limit);
}

START_TEST(window_is_streamed_first)
{
    struct ob1_ways_of of = typical();
    struct ob1_way_step s[OB1_WAYS_MOST];

    ck_assert_uint_eq(ob1_ways(&of, OB1_WINDOW, s), 5);
    check_step(&s[0], 0, OB1_P_EAGER, OB1_P_NOTHING, NULL);
    check_step(&s[1], 4097, OB1_P_STREAM, OB1_P_NOTHING, "eager_limit");
    check_step(&s[2], 65537, OB1_P_RNDV_EXPOSED, OB1_P_PIPELINE, "stream_limit");
    check_step(&s[3], 131072, OB1_P_RNDV_EXPOSED, OB1_P_GET, "rdma_min");
    check_step(&s[4], 524288, OB1_P_RNDV_EXPOSED, OB1_P_SPLIT, "split_min");
}
END_TEST

START_TEST(alone_is_asked_for)
{
    struct ob1_ways_of of = typical();
    struct ob1_way_step s[OB1_WAYS_MOST];

    ck_assert_uint_eq(ob1_ways(&of, OB1_ALONE, s), 4);
    check_step(&s[1], 4097, OB1_P_STREAM, OB1_P_NOTHING, "eager_limit");
    check_step(&s[2], 10000, OB1_P_RNDV_EXPOSED, OB1_P_GET, "alone_min");
    check_step(&s[3], 262144, OB1_P_RNDV_EXPOSED, OB1_P_SPLIT, "alone_split_min");
    /* One fragment may be asked for when it travels alone, and not when it crosses others. */
    of.limits.alone_min = 2000;
    ck_assert_uint_eq(ob1_ways(&of, OB1_ALONE, s), 3);
    check_step(&s[1], 2000, OB1_P_RNDV_EXPOSED, OB1_P_GET, "alone_min");
    /* A message that is announced anyway when it crosses others is fetched as the receiver's thresholds say. */
    ck_assert_uint_eq(ob1_ways(&of, OB1_CROSSES, s), 5);
    check_step(&s[1], 4097, OB1_P_RNDV_EXPOSED, OB1_P_GET, "eager_limit");
    check_step(&s[2], 65537, OB1_P_RNDV_EXPOSED, OB1_P_PIPELINE, "stream_limit");
    check_step(&s[3], 131072, OB1_P_RNDV_EXPOSED, OB1_P_GET, "rdma_min");
}
END_TEST

START_TEST(never_is_no_way)
{
    struct ob1_ways_of of = typical();
    struct ob1_way_step s[OB1_WAYS_MOST];

    of.caps = 0;
    of.limits.rdma_min = ST_BTL_RDMA_NEVER;
    of.limits.alone_min = UINT32_MAX;
    of.limits.split_min = of.limits.alone_split_min = 0;
    for (int traffic = 0; traffic < OB1_CLASSES; traffic++) {
        ck_assert_uint_eq(ob1_ways(&of, (enum ob1_class)traffic, s), 3);
        check_step(&s[2], 65537, OB1_P_RNDV, OB1_P_PIPELINE, "stream_limit");
    }
    of.limits.stream_limit = of.limits.eager_limit; /* nothing is streamed */
    ck_assert_uint_eq(ob1_ways(&of, OB1_WINDOW, s), 2);
    check_step(&s[1], 4097, OB1_P_RNDV, OB1_P_PIPELINE, "eager_limit");
}
END_TEST

START_TEST(wish_of_the_user_shows)
{
    struct ob1_ways_of of = typical();
    struct ob1_way_step s[OB1_WAYS_MOST];
    size_t n;

    of.wanted = OB1_RNDV_PUT;
    n = ob1_ways(&of, OB1_WINDOW, s);
    check_step(&s[n - 1], 65537, OB1_P_RNDV_EXPOSED, OB1_P_PUT, "stream_limit");
    ck_assert_str_eq(ob1_class_name(OB1_WINDOW), "window");
    ck_assert_str_eq(ob1_class_name(OB1_CROSSES), "crosses");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_ways");
    TCase *tc = tcase_create("ways");
    tcase_add_test(tc, window_is_streamed_first);
    tcase_add_test(tc, alone_is_asked_for);
    tcase_add_test(tc, never_is_no_way);
    tcase_add_test(tc, wish_of_the_user_shows);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
