/* Learning from times of messages, with a clock of the test's: the cheaper way is found whatever the facts said, small
 * differences change nothing, tries become rare, and nothing is learnt from broken times. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "support/pattern.h"
#include "support/run_suite.h"
#include "support/world.h"
#include "tune.h"

/* A machine on which a message takes so many ns by either way, and each so many percent more or less. */
struct machine {
    double ns[OB1_TUNE_WAYS];
    unsigned noise;
    uint64_t state;
};

struct seen {
    unsigned by[OB1_TUNE_WAYS], changes;
};

static uint64_t took(struct machine *m, enum ob1_tune_way way)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    double share = (double)(m->state >> 33) / (double)(1u << 31) * 2 - 1; /* -1 to 1 */

    return (uint64_t)(m->ns[way] * (1 + share * m->noise / 100));
}

static struct seen run(struct ob1_tune_cell *c, struct machine *m, enum ob1_class traffic, unsigned messages)
{
    struct ob1_tune_pace pace = ob1_tune_pace(traffic);
    enum ob1_tune_way way = OB1_TUNE_LIMITS;
    struct seen seen = {.changes = c->changes};

    for (unsigned i = 0; i < messages; i++) {
        way = ob1_tune_step(c, i ? took(m, way) : 0, 0, pace);
        seen.by[way]++;
    }
    seen.changes = c->changes - seen.changes;
    return seen;
}

static struct ob1_tune_cell begun(enum ob1_class traffic, enum ob1_tune_way way)
{
    struct ob1_tune_cell c;

    ob1_tune_begin(&c, way, ob1_tune_pace(traffic));
    return c;
}

START_TEST(the_cheaper_way_is_found_and_kept)
{
    for (int traffic = 0; traffic < (int)OB1_TUNE_KINDS; traffic++)
        for (int better = 0; better < OB1_TUNE_WAYS; better++)
            for (int first = 0; first < OB1_TUNE_WAYS; first++) {
                struct machine m = {.ns = {1250, 1250}, .noise = 10, .state = 1};
                struct ob1_tune_cell c = begun((enum ob1_class)traffic, (enum ob1_tune_way)first);
                m.ns[better] = 1000;
                struct seen early = run(&c, &m, (enum ob1_class)traffic, 4000);
                ck_assert_int_eq(c.way, better);
                ck_assert_uint_eq(early.changes, first != better);
                struct seen later = run(&c, &m, (enum ob1_class)traffic, 200000);
                ck_assert_int_eq(c.way, better);
                ck_assert_uint_eq(later.changes, 0);
                ck_assert_uint_lt(later.by[!better] * 100, 200000 * 2); /* less than 2 % tried */
            }
}
END_TEST

START_TEST(close_ways_do_not_change_places)
{
    struct machine m = {.ns = {1000, 970}, .noise = 3, .state = 7};
    struct ob1_tune_cell c = begun(OB1_ALONE, OB1_TUNE_LIMITS);
    struct seen all = run(&c, &m, OB1_ALONE, 400000);

    ck_assert_uint_gt(c.tries, 4); /* it was tried */
    ck_assert_uint_eq(all.changes, 0);
}
END_TEST

START_TEST(one_lucky_try_is_not_enough)
{
    struct ob1_tune_pace pace = ob1_tune_pace(OB1_ALONE);
    struct ob1_tune_cell c = begun(OB1_ALONE, OB1_TUNE_LIMITS);
    enum ob1_tune_way way = OB1_TUNE_LIMITS;

    /* The other way seems twice as fast in every second try. */
    for (unsigned i = 0; i < 300000; i++)
        way = ob1_tune_step(&c, i == 0 ? 0 : way == OB1_TUNE_LIMITS ? 1000 : c.tries % 2 ? 2000 : 500, 0, pace);
    ck_assert_uint_gt(c.tries, 6);
    ck_assert_uint_eq(c.changes, 0);
    ck_assert_int_eq(c.way, OB1_TUNE_LIMITS);
}
END_TEST

START_TEST(a_machine_that_changes_is_followed)
{
    struct machine m = {.ns = {1000, 1300}, .noise = 5, .state = 3};
    struct ob1_tune_cell c = begun(OB1_ALONE, OB1_TUNE_LIMITS);

    run(&c, &m, OB1_ALONE, 20000);
    ck_assert_int_eq(c.way, OB1_TUNE_LIMITS);
    m.ns[OB1_TUNE_ASKED] = 500;
    run(&c, &m, OB1_ALONE, 300000);
    ck_assert_int_eq(c.way, OB1_TUNE_ASKED);
}
END_TEST

/* Far dearer ways: the first try shows it, and there is hardly another. */
START_TEST(a_bad_way_costs_little)
{
    struct machine m = {.ns = {1000, 20000}, .noise = 5, .state = 5};
    struct ob1_tune_cell c = begun(OB1_CROSSES, OB1_TUNE_LIMITS);
    struct seen all = run(&c, &m, OB1_CROSSES, 1000000);

    ck_assert_uint_ge(c.tries, 1);
    ck_assert_uint_le(c.tries, 3);
    ck_assert_uint_lt(all.by[OB1_TUNE_ASKED], 1000);
}
END_TEST

START_TEST(broken_times_teach_nothing)
{
    struct ob1_tune_pace pace = ob1_tune_pace(OB1_WINDOW);
    struct ob1_tune_cell c = begun(OB1_WINDOW, OB1_TUNE_LIMITS);
    enum ob1_tune_way way = OB1_TUNE_LIMITS;

    for (unsigned i = 0; i < 200000; i++) /* seldom two of a kind in a row */
        way = ob1_tune_step(&c, i % 5 == 0 && way == OB1_TUNE_ASKED ? 1 : 0, 0, pace);
    ck_assert_uint_gt(c.tries, 1);
    ck_assert_uint_eq(c.changes, 0);
}
END_TEST

/* A window of announced messages is posted in no time and waited for at its end; its first message, in another cell, is
 * not timed. */
START_TEST(posting_is_not_sending)
{
    const unsigned length[] = {8, 64, 100, 256, 400};
    struct ob1_tune_pace pace = ob1_tune_pace(OB1_WINDOW);
    struct ob1_tune_cell c = begun(OB1_WINDOW, OB1_TUNE_LIMITS);
    enum ob1_tune_way way = OB1_TUNE_LIMITS;
    uint64_t waits = 0, before = 0, asked = 0;

    for (unsigned w = 0; w < 200000 / length[_i]; w++) {
        uint32_t backlog = 1;
        for (unsigned i = 1; i < length[_i]; i++) {
            way = ob1_tune_step(&c, before, backlog, pace);
            before = way == OB1_TUNE_ASKED ? 200 : 1000;
            waits += way == OB1_TUNE_ASKED ? 4000 : 0;
            backlog += way == OB1_TUNE_ASKED;
            asked += way == OB1_TUNE_ASKED;
        }
        before += waits;
        waits = 0;
    }
    ck_assert_uint_gt(c.tries, 0);
    ck_assert_int_eq(c.way, OB1_TUNE_LIMITS);
    ck_assert_uint_eq(c.changes, 0);
    ck_assert_uint_lt(asked, 10000);
}
END_TEST

START_TEST(lengths_have_cells)
{
    ck_assert_uint_eq(ob1_tune_index(OB1_WINDOW, OB1_TUNE_LEAST - 1), OB1_TUNE_NONE);
    ck_assert_uint_eq(ob1_tune_index(OB1_WINDOW, OB1_TUNE_LEAST), 0);
    ck_assert_uint_eq(ob1_tune_index(OB1_WINDOW, 2 * OB1_TUNE_LEAST - 1), 0);
    ck_assert_uint_eq(ob1_tune_index(OB1_ALONE, 65536), OB1_TUNE_SIZES + 3);
    ck_assert_uint_eq(ob1_tune_index(OB1_CROSSES, (1u << 20) - 1), 3 * OB1_TUNE_SIZES - 1);
    ck_assert_uint_eq(ob1_tune_index(OB1_CROSSES, 1u << 20), OB1_TUNE_NONE);
}
END_TEST

/* ---- over transports: messages go by either way, and arrive whole ---- */

enum { MESSAGE = 12000, TURNS = 150, WINDOW = 64, WINDOWS = 8 };

static const struct ob1 *pml_of(const struct tw_rank *r)
{
    return (const struct ob1 *)r->comm->pml;
}

static uint64_t announced(const struct tw_rank *r)
{
    const struct ob1 *pml = pml_of(r);

    return pml->by_protocol[OB1_P_RNDV_EXPOSED] + pml->by_protocol[OB1_P_RNDV_KEY];
}

static uint32_t tries(const struct tw_rank *r, enum ob1_class traffic)
{
    const struct ob1_tune *t = pml_of(r)->tunes;

    while (t && t->cell[ob1_tune_index(traffic, MESSAGE)].tries == 0)
        t = t->next;
    return t ? t->cell[ob1_tune_index(traffic, MESSAGE)].tries : 0;
}

/* How many of them the sender takes for messages alone depends on how soon the receiver answers. */
static void ping_pong(struct tw_rank *r)
{
    char b[MESSAGE];

    for (int i = 0; i < TURNS; i++)
        for (int from = 0; from < 2; from++) {
            if (r->rank == from) {
                pattern_fill(b, MESSAGE, (uint64_t)i);
                CHECK_OK(strata_send(r->comm, b, MESSAGE, !r->rank, 1));
            } else {
                CHECK_OK(strata_recv(r->comm, b, MESSAGE, !r->rank, 1, NULL));
                CHECK_EQ(pattern_check(b, MESSAGE, (uint64_t)i), -1);
            }
        }
    CHECK(pml_of(r)->tunes != NULL);
    CHECK(tries(r, OB1_ALONE) > 0 || pml_of(r)->tunes->cell[ob1_tune_index(OB1_WINDOW, MESSAGE)].pause > 0);
    tw_quiesce(r);
}

/* One fragment each, which untuned is never announced when nobody waits for it. */
static void windows(struct tw_rank *r)
{
    char *out = malloc(MESSAGE), *in = malloc((size_t)WINDOW * MESSAGE);
    strata_request_t *q[WINDOW];

    CHECK(in && out);
    pattern_fill(out, MESSAGE, 7);
    for (int turn = 0; turn < WINDOWS * 2; turn++) {
        for (int i = 0; i < WINDOW; i++)
            CHECK_OK(r->rank ? strata_irecv(r->comm, in + (size_t)i * MESSAGE, MESSAGE, 0, 1, &q[i])
                             : strata_isend(r->comm, out, MESSAGE, 1, 1, &q[i]));
        CHECK_OK(strata_waitall(WINDOW, q, NULL));
        for (int i = 0; i < WINDOW && r->rank; i++)
            CHECK_EQ(pattern_check(in + (size_t)i * MESSAGE, MESSAGE, 7), -1);
    }
    if (r->rank == 0) {
        CHECK(tries(r, OB1_WINDOW) >= 1); /* 2 blocks of pause and 4 of the try: 768 messages of 1024 */
        CHECK(announced(r) >= 128);
    }
    free(in);
    free(out);
    tw_quiesce(r);
}

static void untuned(struct tw_rank *r)
{
    char b[MESSAGE] = {0};

    if (r->rank == 0)
        CHECK_OK(strata_send(r->comm, b, MESSAGE, 1, 1));
    else
        CHECK_OK(strata_recv(r->comm, b, MESSAGE, 0, 1, NULL));
    CHECK(pml_of(r)->tunes == NULL);
    tw_quiesce(r);
}

static const char *const tuned_settings[] = {
    "mca_base_tune=online btl=self,sm", "mca_base_tune=online btl=shuffle,self",
    "mca_base_tune=online btl=shuffle,self btl_shuffle_needs_reg=1", "mca_base_tune=online btl=self,tcp"};
static const char *const untuned_settings[] = {"mca_base_tune=facts btl=shuffle,self",
                                               "mca_base_tune=off btl=self,sm",
                                               "mca_base_tune=online btl=shuffle,self pml_ob1_eager_limit=4k",
                                               "mca_base_tune=online btl=self,sm btl_sm_rdma_min=1m",
                                               "mca_base_tune=online btl=self,sm pml_ob1_rndv=put",
                                               "mca_base_tune=online btl=self,tcp btl_tcp_rdma_min=32k"};
enum {
    TUNED = sizeof(tuned_settings) / sizeof(*tuned_settings),
    UNTUNED = sizeof(untuned_settings) / sizeof(*untuned_settings)
};

static void run_world(const char *settings, void (*body)(struct tw_rank *r))
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings}, body, NULL);
}

START_TEST(messages_that_are_answered)
{
    run_world(tuned_settings[_i], ping_pong);
}
END_TEST

START_TEST(windows_of_messages)
{
    run_world(tuned_settings[_i], windows);
}
END_TEST

START_TEST(the_user_wins)
{
    run_world(untuned_settings[_i], untuned);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tune");
    TCase *pure = tcase_create("pure"), *whole = tcase_create("over transports");

    tcase_add_test(pure, the_cheaper_way_is_found_and_kept);
    tcase_add_test(pure, close_ways_do_not_change_places);
    tcase_add_test(pure, one_lucky_try_is_not_enough);
    tcase_add_test(pure, a_machine_that_changes_is_followed);
    tcase_add_test(pure, a_bad_way_costs_little);
    tcase_add_test(pure, broken_times_teach_nothing);
    tcase_add_loop_test(pure, posting_is_not_sending, 0, 5);
    tcase_add_test(pure, lengths_have_cells);
    tcase_add_loop_test(whole, messages_that_are_answered, 0, TUNED);
    tcase_add_loop_test(whole, windows_of_messages, 0, TUNED);
    tcase_add_loop_test(whole, the_user_wins, 0, UNTUNED);
    suite_add_tcase(suite, pure);
    suite_add_tcase(suite, whole);
    return run_suite(suite);
}
