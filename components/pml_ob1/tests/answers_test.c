/* Answers of receivers about announced messages: the byte on the wire, which of them count as late, and the habit that
 * a sender derives from the last ones. */
#include <check.h>
#include <string.h>
#include "answers.h"
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "send_way.h"
#include "support/run_suite.h"

START_TEST(times_are_powers_of_two)
{
    ck_assert_uint_eq(ob1_found_waited(0), OB1_FOUND_WAITED);
    ck_assert_uint_eq(ob1_found_waited(1), OB1_FOUND_WAITED);
    ck_assert_uint_eq(ob1_found_waited(2), OB1_FOUND_WAITED + 1);
    ck_assert_uint_eq(ob1_found_waited(3), OB1_FOUND_WAITED + 1);
    ck_assert_uint_eq(ob1_found_waited(1024), OB1_FOUND_WAITED + 10);
    ck_assert_uint_eq(ob1_found_waited(UINT32_MAX), OB1_FOUND_MOST);
}
END_TEST

/* 10,000 bytes at 1000 MB/s take 10 us. */
START_TEST(unexpected_is_not_late)
{
    ck_assert(!ob1_found_late(OB1_FOUND_POSTED, 10000, 1000));
    ck_assert(!ob1_found_late(ob1_found_waited(0), 0, UINT32_MAX));
    ck_assert(!ob1_found_late(ob1_found_waited(9), 10000, 1000));
    ck_assert(ob1_found_late(ob1_found_waited(16), 10000, 1000));
    ck_assert(!ob1_found_late(ob1_found_waited(16), 100000, 1000));
    ck_assert(ob1_found_late(OB1_FOUND_MOST, 1u << 30, 1000));
    ck_assert(!ob1_found_late(OB1_FOUND_MOST, UINT64_MAX, UINT32_MAX));
}
END_TEST

static void add(struct ob1_answers *a, const char *answers)
{
    for (; *answers; answers++)
        ob1_answers_add(a, *answers == 'L');
}

START_TEST(habits_are_learnt)
{
    struct ob1_answers a = {0};

    ck_assert_str_eq(ob1_habit_name(&a), "unknown");
    add(&a, "LLLLLLL");
    ck_assert_str_eq(ob1_habit_name(&a), "unknown"); /* seven answers are too few */
    add(&a, "L");
    ck_assert_str_eq(ob1_habit_name(&a), "late");
    add(&a, ".....");
    ck_assert_str_eq(ob1_habit_name(&a), "late"); /* three of eight: what was late stays so for a while */
    add(&a, ".");
    ck_assert_str_eq(ob1_habit_name(&a), "mixed");
    add(&a, "..");
    ck_assert_str_eq(ob1_habit_name(&a), "early");
    add(&a, "L");
    ck_assert_str_eq(ob1_habit_name(&a), "mixed"); /* one is enough */
    add(&a, "LLLL");
    ck_assert_str_eq(ob1_habit_name(&a), "mixed");
    add(&a, "L");
    ck_assert_str_eq(ob1_habit_name(&a), "late");
}
END_TEST

/* Messages until the next one that asks. */
static unsigned pause_of(struct ob1_answers *a)
{
    unsigned n = 1;

    while (!ob1_answers_try(a))
        n++;
    return n;
}

START_TEST(tries_become_rare)
{
    struct ob1_answers a = {0};
    unsigned n = 0;

    for (int i = 0; i < 4; i++) /* no answers come: as often as at first */
        ck_assert_uint_eq(pause_of(&a), 31);
    add(&a, "L.L.L.L."); /* mixed */
    for (int i = 0; i < 10; i++)
        n = pause_of(&a);
    ck_assert_uint_eq(n, 255);
    add(&a, "........"); /* another habit: begins anew, and ends rarer */
    ck_assert_uint_eq(pause_of(&a), 31);
    for (int i = 0; i < 20; i++)
        n = pause_of(&a);
    ck_assert_uint_eq(n, 4095);
    add(&a, "LLLLLLLL"); /* late: who is waited for is asked often */
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(pause_of(&a), 31);
}
END_TEST

/* A sender with one announced message under way. */
struct sender {
    struct ob1_table table;
    struct ob1_peer peer;
    struct ob1_req req;
};

static struct sender sender(void)
{
    struct sender s;

    memset(&s, 0, sizeof(s));
    s.table.of.learns = true;
    s.table.of.bandwidth_mbs = 1000;
    s.req.protocol = OB1_P_RNDV_EXPOSED;
    s.req.data.length = 10000;
    return s;
}

static unsigned heard(struct sender *s, uint8_t found)
{
    s->peer.table = &s->table;
    s->req.peer = &s->peer;
    ob1_send_heard(&s->req, found);
    return s->peer.flow.answers.n;
}

START_TEST(only_what_can_be_true_counts)
{
    struct sender s = sender();

    for (unsigned found = OB1_FOUND_MOST + 1; found <= UINT8_MAX; found++)
        ck_assert_uint_eq(heard(&s, (uint8_t)found), 0);
    ck_assert_uint_eq(heard(&s, OB1_FOUND_NOTHING), 0);
    ck_assert_uint_eq(heard(&s, OB1_FOUND_MOST), 1);
    ck_assert_uint_eq(s.peer.flow.answers.late, 1);
    ck_assert_uint_eq(heard(&s, OB1_FOUND_POSTED), 1); /* once for each message */
    s = sender();
    s.req.protocol = OB1_P_EAGER_SYNC; /* which was not announced */
    ck_assert_uint_eq(heard(&s, OB1_FOUND_MOST), 0);
    s = sender(); /* a late receiver whose announcements hardly wait, but do, stays one; sends that wait are judged by
                     time */
    s.peer.flow.answers.habit = OB1_HABIT_LATE;
    s.req.flow = OB1_LATE;
    heard(&s, OB1_FOUND_WAITED);
    ck_assert_uint_eq(s.peer.flow.answers.late, 1);
    s.req.heard = false;
    heard(&s, OB1_FOUND_POSTED);
    ck_assert_uint_eq(s.peer.flow.answers.late, 2);
    s.req.heard = false;
    s.req.flow = OB1_ALONE;
    heard(&s, OB1_FOUND_WAITED);
    ck_assert_uint_eq(s.peer.flow.answers.late, 4);
    s = sender();
    s.table.of.learns = false;
    ck_assert_uint_eq(heard(&s, OB1_FOUND_MOST), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_answers");
    TCase *tc = tcase_create("answers");

    tcase_add_test(tc, times_are_powers_of_two);
    tcase_add_test(tc, unexpected_is_not_late);
    tcase_add_test(tc, habits_are_learnt);
    tcase_add_test(tc, tries_become_rare);
    tcase_add_test(tc, only_what_can_be_true_counts);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
