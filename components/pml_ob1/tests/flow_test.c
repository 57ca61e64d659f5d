/* Classes of traffic: what a sender takes for a message that travels alone, or that crosses others, and that such
 * messages are announced and arrive whole. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "support/pattern.h"
#include "support/run_suite.h"
#include "support/world.h"
#include "flow.h"

START_TEST(answered_messages_travel_alone)
{
    struct ob1_flow t = {0};
    int place = 0;

    ob1_flow_enter(&t, &place, 0, 0);
    ck_assert(!ob1_flow_alone(&t, 0)); /* the first: nothing is known */
    for (uint32_t heard = 1; heard < 5; heard++) {
        ck_assert(ob1_flow_alone(&t, heard));
        ck_assert(!ob1_flow_alone(&t, heard)); /* a second one that waits for no answer */
    }
    t.long_sends = 1;
    ck_assert(!ob1_flow_alone(&t, 5));
    t.long_sends = 0;
    ck_assert(ob1_flow_alone(&t, 5));
}
END_TEST

START_TEST(late_receives_are_remembered)
{
    struct ob1_flow t = {0};
    int place = 0;
    uint32_t heard = 0;

    ob1_flow_enter(&t, &place, 0, 0);
    ck_assert(ob1_flow_alone(&t, ++heard));
    t.late = OB1_LATE_FOR;
    for (uint32_t i = 0; i < OB1_LATE_FOR; i++)
        ck_assert(!ob1_flow_alone(&t, ++heard));
    ck_assert(ob1_flow_alone(&t, ++heard));
}
END_TEST

START_TEST(bytes_that_come_pay_for_crossing)
{
    struct ob1_flow t = {0};
    int place = 0;

    ob1_flow_enter(&t, &place, 0, 0);
    ck_assert(!ob1_flow_crosses(&t, 0, 1000));
    ck_assert(!ob1_flow_crosses(&t, 8, 1000)); /* an acknowledgement */
    ck_assert(ob1_flow_crosses(&t, 1000, 1000));
    ck_assert(ob1_flow_crosses(&t, 1000, 1000));
    ck_assert(!ob1_flow_crosses(&t, 1000, 1000));
    /* Whatever has come, not more than a window of it counts. */
    ck_assert(ob1_flow_crosses(&t, UINT64_MAX / 2, OB1_CROSSING));
    ck_assert(!ob1_flow_crosses(&t, UINT64_MAX / 2, 1));
}
END_TEST

START_TEST(counters_of_another_context_say_nothing)
{
    struct ob1_flow t = {0};
    int one = 0, other = 0;

    ob1_flow_enter(&t, &one, 10, 100000);
    ob1_flow_enter(&t, &other, 3, 5);
    ck_assert(!ob1_flow_alone(&t, 3));
    ck_assert(!ob1_flow_crosses(&t, 5, 1));
    ob1_flow_enter(&t, &other, 4, 10);
    ck_assert(ob1_flow_alone(&t, 4));
    ck_assert(ob1_flow_crosses(&t, 10, 10));
    ob1_flow_enter(&t, &other, 0, 0); /* a new one in the memory of the old */
    ck_assert(!ob1_flow_alone(&t, 0));
}
END_TEST

/* ---- over transports ---- */

enum { MESSAGE = 5000, LONG = 40000, ROUNDS = 100, WINDOW = 32 };

static uint64_t announced(const struct tw_rank *r)
{
    const struct ob1 *pml = (const struct ob1 *)r->comm->pml;

    return pml->by_protocol[OB1_P_RNDV_EXPOSED] + pml->by_protocol[OB1_P_RNDV_KEY];
}

static void send_one(struct tw_rank *r, char *b, int i)
{
    pattern_fill(b, MESSAGE, (uint64_t)i);
    CHECK_OK(strata_send(r->comm, b, MESSAGE, !r->rank, 1));
}

static void recv_one(struct tw_rank *r, char *b, int i)
{
    CHECK_OK(strata_recv(r->comm, b, MESSAGE, !r->rank, 1, NULL));
    CHECK_EQ(pattern_check(b, MESSAGE, (uint64_t)i), -1);
}

/* Some wait longer than a sender's patience, on a busy machine most of them; then the next ones are not announced. */
static void ping_pong(struct tw_rank *r)
{
    char b[MESSAGE];

    for (int i = 0; i < ROUNDS; i++) {
        if (r->rank == 0)
            send_one(r, b, i);
        recv_one(r, b, i);
        if (r->rank == 1)
            send_one(r, b, i);
        else if (i == 0)
            CHECK_EQ(announced(r), 0);
    }
    CHECK(announced(r) >= ROUNDS / (OB1_LATE_FOR + 1) - 1);
}

static void one_way(struct tw_rank *r)
{
    char b[MESSAGE];

    for (int i = 0; i < ROUNDS; i++) {
        if (r->rank == 0)
            send_one(r, b, i);
        else
            recv_one(r, b, i);
    }
    CHECK_EQ(announced(r), 0);
    tw_quiesce(r);
}

/* Windows of long messages; both ways all but the first are announced, one way at most the first of each. */
static void windows(struct tw_rank *r, bool both_ways)
{
    enum { TURNS = 4 };
    char *out = malloc(LONG), *in = malloc((size_t)WINDOW * LONG);
    strata_request_t *q[2 * WINDOW];

    CHECK(in && out);
    pattern_fill(out, LONG, 7);
    for (int turn = 0; turn < TURNS; turn++) {
        size_t n = 0;
        for (int i = 0; i < WINDOW && (both_ways || r->rank); i++)
            CHECK_OK(strata_irecv(r->comm, in + (size_t)i * LONG, LONG, !r->rank, 1, &q[n++]));
        for (int i = 0; i < WINDOW && (both_ways || !r->rank); i++)
            CHECK_OK(strata_isend(r->comm, out, LONG, !r->rank, 1, &q[n++]));
        CHECK_OK(strata_waitall(n, q, NULL));
        for (int i = 0; i < WINDOW && (both_ways || r->rank); i++)
            CHECK_EQ(pattern_check(in + (size_t)i * LONG, LONG, 7), -1);
    }
    if (both_ways)
        CHECK(announced(r) >= (TURNS - 1) * WINDOW);
    else
        CHECK(announced(r) <= TURNS);
    free(in);
    free(out);
    tw_quiesce(r);
}

static void both_ways(struct tw_rank *r)
{
    windows(r, true);
}

static void windows_one_way(struct tw_rank *r)
{
    windows(r, false);
}

static const char *const settings[] = {
    "btl=self,sm pml_ob1_alone_min=1000 pml_ob1_stream_limit=100000",
    "btl=shuffle,self pml_ob1_alone_min=1000 pml_ob1_stream_limit=100000",
    ("btl=shuffle,self pml_ob1_alone_min=1000 pml_ob1_stream_limit=100000 btl_shuffle_needs_reg=1 btl_shuffle_rails=3 "
     "pml_ob1_stripe_min=1000"),
};
enum { N_SETTINGS = sizeof(settings) / sizeof(*settings) };

static void run(int i, void (*body)(struct tw_rank *r))
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[i]}, body, NULL);
}

START_TEST(alone)
{
    run(_i, ping_pong);
}
END_TEST

START_TEST(not_alone)
{
    run(_i, one_way);
}
END_TEST

START_TEST(crossing)
{
    run(_i, both_ways);
}
END_TEST

START_TEST(not_crossing)
{
    run(_i, windows_one_way);
}
END_TEST

/* Limits that the user has set for messages sent unasked hold. */
START_TEST(limits_of_the_user)
{
    static const char *const limits[] = {"pml_ob1_eager_limit=8k", "pml_ob1_stream_limit=65536", "btl_sm_rdma_min=1m",
                                         "btl_sm_eager_limit=15k"};
    char text[100];

    snprintf(text, sizeof(text), "btl=self,sm %s", limits[_i]);
    tw_run(&(struct tw_options){.n = 2, .settings = text}, one_way, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("classes");
    TCase *unit = tcase_create("classes"), *t = tcase_create("over transports");

    tcase_add_test(unit, answered_messages_travel_alone);
    tcase_add_test(unit, late_receives_are_remembered);
    tcase_add_test(unit, bytes_that_come_pay_for_crossing);
    tcase_add_test(unit, counters_of_another_context_say_nothing);
    tcase_add_loop_test(t, alone, 0, N_SETTINGS);
    tcase_add_loop_test(t, not_alone, 0, N_SETTINGS);
    tcase_add_loop_test(t, crossing, 0, N_SETTINGS);
    tcase_add_loop_test(t, not_crossing, 0, N_SETTINGS);
    tcase_add_loop_test(t, limits_of_the_user, 0, 4);
    suite_add_tcase(s, unit);
    suite_add_tcase(s, t);
    return run_suite(s);
}
