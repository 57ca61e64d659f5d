/* The choice of a form, without a communicator. */
#include "choose.h"

#include <check.h>
#include <limits.h>
#include "support/run_suite.h"

START_TEST(classes_of_times)
{
    static const struct {
        uint64_t us;
        unsigned class;
    } cases[] = {{0, 0},     {1, 1},     {2, 2},      {3, 2},      {4, 3},
                 {1023, 10}, {1024, 11}, {16383, 14}, {16384, 15}, {1 << 30, 15}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_uint_eq(arrival_skew_class(cases[i].us * 1000), cases[i].class);
        ck_assert_uint_eq(arrival_skew_class(cases[i].us * 1000 + 999), cases[i].class);
    }
    ck_assert_uint_lt(arrival_skew_class(UINT64_MAX), SKEW_CLASSES);
}
END_TEST

static size_t limit(enum arrival_form form, size_t agreed, unsigned skew, size_t most, uint64_t most_us)
{
    struct arrival_choice c = {.form = form, .shm_auto = most, .allgather_auto = most, .skew_max = most_us};
    struct arrival_question q = {.kind = STRATA_ALLTOALLV, .ranks = 8, .nodes = 2, .skew = skew}, same = q;
    same.kind = STRATA_ALLGATHERV;
    ck_assert_uint_eq(arrival_choose_limit(&c, &same, agreed), arrival_choose_limit(&c, &q, agreed));
    return arrival_choose_limit(&c, &q, agreed);
}

START_TEST(limit_of_each_form)
{
    ck_assert_uint_eq(limit(FORM_DIRECT, 4096, 0, 256, 1000), 0);
    ck_assert_uint_eq(limit(FORM_PAP_DIRECT, 4096, 0, 256, 1000), 0);
    ck_assert_uint_eq(limit(FORM_PAP_BRUCK, 4096, 0, 256, 1000), 0);
    /* By name, whatever the skew. */
    ck_assert_uint_eq(limit(FORM_SHM_DIRECT, 4096, 15, 256, 1000), 4096);
    ck_assert_uint_eq(limit(FORM_PAP_SHM_DIRECT, 4096, 15, 256, 1000), 4096);
    /* By size and skew. */
    ck_assert_uint_eq(limit(FORM_AUTO, 4096, 10, 256, 1000), 256);
    ck_assert_uint_eq(limit(FORM_AUTO, 64, 10, 256, 1000), 64);
    ck_assert_uint_eq(limit(FORM_AUTO, 0, 0, 256, 1000), 0);
    ck_assert_uint_eq(limit(FORM_AUTO, 4096, 11, 256, 1000), 0);
    ck_assert_uint_eq(limit(FORM_AUTO, 4096, 1, 256, 0), 0);
    ck_assert_uint_eq(limit(FORM_AUTO, 4096, 0, 256, 0), 256);
    /* The last class has no upper end: a limit there leaves nothing out. */
    ck_assert_uint_eq(limit(FORM_AUTO, 4096, 15, 256, 16384), 256);
}
END_TEST

static enum arrival_form form_of(const struct arrival_choice *c, strata_coll_kind_t kind, size_t bytes, int ranks,
                                 int nodes, unsigned skew)
{
    struct arrival_question q = {kind, bytes, ranks, nodes, skew};
    return arrival_choose(c, &q);
}

/* Size, locality and skew decide without a table. */
START_TEST(default_forms)
{
    struct arrival_choice c = {.form = FORM_AUTO, .shm_auto = 256, .skew_max = 1000};
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 256, 16, 4, 0), FORM_PAP_SHM_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 257, 16, 4, 0), FORM_PAP_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 8, 16, 16, 0), FORM_PAP_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 8, 16, 4, 11), FORM_PAP_DIRECT);
    /* A bcast has a limit of its own, and is no bulk of blocks to each node. */
    c.bcast_auto = 4096;
    ck_assert_int_eq(form_of(&c, STRATA_BCAST, 4096, 16, 4, 0), FORM_PAP_SHM_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_BCAST, 4097, 16, 4, 0), FORM_PAP_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_BCAST, 4096, 16, 16, 0), FORM_PAP_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_BCAST, 4096, 16, 4, 11), FORM_PAP_DIRECT);
    c.allgather_auto = 1024;
    ck_assert_int_eq(form_of(&c, STRATA_ALLGATHER, 1024, 16, 4, 0), FORM_PAP_SHM_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLGATHER, 1025, 16, 4, 0), FORM_PAP_DIRECT);
    c.form = FORM_BRUCK;
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 8, 16, 4, 11), FORM_BRUCK);
}
END_TEST

/* The first rule that fits in everything; a rule that leaves the operation to others counts when the call starts. */
START_TEST(rules)
{
    static const struct arrival_rule table[] = {
        {STRATA_ALLTOALL, 8, INT_MAX, 64, UINT64_MAX, FORM_PAP_BRUCK},
        {STRATA_ALLTOALL, INT_MAX, 4, 1024, 500, FORM_SHM_DIRECT},
        {STRATA_ALLTOALL, INT_MAX, INT_MAX, 4096, UINT64_MAX, FORM_DIRECT},
        {STRATA_BCAST, INT_MAX, INT_MAX, SIZE_MAX, UINT64_MAX, FORM_NEXT},
        {STRATA_ALLTOALLV, INT_MAX, 4, 128, 500, FORM_PAP_SHM_DIRECT},
        {STRATA_ALLTOALLV, INT_MAX, INT_MAX, SIZE_MAX, UINT64_MAX, FORM_DIRECT}};
    struct arrival_choice c = {
        .form = FORM_AUTO, .shm_auto = 256, .allgather_auto = 256, .skew_max = 1000, .rules = table, .n_rules = 6};
    struct arrival_question bcast = {STRATA_BCAST, 8, 8, 8, 0}, v = {STRATA_ALLTOALLV, 0, 16, 4, 9};
    struct arrival_question small = {STRATA_ALLTOALL, 64, 8, 8, 0}, large = {STRATA_ALLTOALL, 65, 8, 8, 0};
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 64, 8, 2, 0), FORM_PAP_BRUCK);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 64, 9, 2, 9), FORM_SHM_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 64, 9, 2, 10), FORM_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 64, 9, 5, 0), FORM_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 5000, 9, 2, 0), FORM_PAP_DIRECT);
    ck_assert_int_eq(form_of(&c, STRATA_ALLGATHER, 64, 9, 2, 0), FORM_PAP_SHM_DIRECT);
    ck_assert(arrival_choose_next(&c, &bcast) && !arrival_choose_next(&c, &v));
    ck_assert_int_eq(arrival_choose_rounds(&c, &small), FORM_PAP_BRUCK);
    ck_assert_int_eq(arrival_choose_rounds(&c, &large), FORM_NEXT);
    ck_assert_uint_eq(arrival_choose_limit(&c, &v, 4096), 128);
    v.skew = 10;
    ck_assert_uint_eq(arrival_choose_limit(&c, &v, 4096), 0);
    c.form = FORM_DIRECT; /* by name: no table */
    ck_assert(!arrival_choose_next(&c, &bcast));
    ck_assert_int_eq(form_of(&c, STRATA_ALLTOALL, 64, 8, 2, 0), FORM_DIRECT);
}
END_TEST

/* Without a table: what the next component does better goes there, whatever the ranks. */
START_TEST(default_rules)
{
    struct arrival_choice c = {.form = FORM_AUTO, .rules = arrival_default_rules, .n_rules = ARRIVAL_DEFAULT_RULES};
    static const struct {
        strata_coll_kind_t kind;
        size_t bytes;
        bool next;
    } cases[] = {{STRATA_BARRIER, 0, true},    {STRATA_ALLREDUCE, 4096, true}, {STRATA_ALLREDUCE, 4097, false},
                 {STRATA_ALLTOALL, 1, false},  {STRATA_ALLTOALLV, 0, false},   {STRATA_ALLGATHER, 8, false},
                 {STRATA_ALLGATHERV, 0, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arrival_question q = {cases[i].kind, cases[i].bytes, 16, 16, 0};
        ck_assert_int_eq(arrival_choose_next(&c, &q), cases[i].next);
    }
}
END_TEST

START_TEST(aware_forms)
{
    ck_assert(!arrival_is_aware(FORM_DIRECT) && !arrival_is_aware(FORM_SHM_DIRECT));
    ck_assert(arrival_is_aware(FORM_PAP_DIRECT) && arrival_is_aware(FORM_PAP_SHM_DIRECT));
    ck_assert(arrival_is_aware(FORM_AUTO));
    ck_assert(!arrival_is_aware(FORM_BRUCK) && !arrival_is_aware(FORM_DOUBLING));
    ck_assert(arrival_is_aware(FORM_PAP_BRUCK) && arrival_is_aware(FORM_PAP_DOUBLING));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("choose");
    TCase *tc = tcase_create("choose");
    tcase_add_test(tc, classes_of_times);
    tcase_add_test(tc, limit_of_each_form);
    tcase_add_test(tc, default_forms);
    tcase_add_test(tc, rules);
    tcase_add_test(tc, default_rules);
    tcase_add_test(tc, aware_forms);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
