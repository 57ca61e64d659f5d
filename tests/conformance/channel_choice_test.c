/* The choices of channels, between copies and direct messages, puts and sends: which way each message takes, from times
 * that the test makes up. */
#include <check.h>

#include "channel/choice.h"
#include "channel/trial.h"
#include "support/run_suite.h"

enum { BYTES = 50000 };

/* Messages that take so many ns by each way, until the way has changed or n have gone; returns how many. */
static uint32_t go(struct channel_choice *c, uint64_t copy, uint64_t direct, uint32_t n)
{
    uint8_t way = c->way;
    uint32_t i = 0;
    while (i < n && c->way == way) {
        channel_count(c, BYTES, way == CHANNEL_BY_COPY ? copy : direct);
        i++;
    }
    return i;
}

START_TEST(both_are_tried_and_the_faster_one_stays)
{
    struct channel_choice c = {0};
    ck_assert_int_eq(c.way, CHANNEL_BY_COPY);
    ck_assert_uint_eq(channel_copy_ns(&c, BYTES), 0);
    ck_assert_uint_eq(go(&c, 7000, 4000, 5000), CHANNEL_TRIAL);
    ck_assert_int_eq(c.way, CHANNEL_DIRECT);
    ck_assert_uint_eq(channel_copy_ns(&c, BYTES), 7000);
    /* Its trial, and the term that it has won. */
    ck_assert_uint_eq(go(&c, 7000, 4000, 5000), CHANNEL_TRIAL + CHANNEL_TERM);
    ck_assert_uint_eq(go(&c, 7000, 4000, 5000), CHANNEL_TRIAL);
    ck_assert_int_eq(c.way, CHANNEL_DIRECT);
}
END_TEST

START_TEST(the_slower_one_has_trials_only)
{
    struct channel_choice c = {0};
    uint32_t slow = 0;
    for (uint32_t i = 0; i < 10 * CHANNEL_TERM; i++) {
        slow += c.way == CHANNEL_DIRECT;
        channel_count(&c, BYTES, c.way == CHANNEL_DIRECT ? 9000 : 7000);
    }
    ck_assert_uint_ge(slow, 9 * CHANNEL_TRIAL);
    ck_assert_uint_le(slow, 10 * CHANNEL_TRIAL);
}
END_TEST

/* What the other way has left in the ring makes the first ones slow. */
START_TEST(the_first_ones_do_not_count)
{
    struct channel_choice c = {0};
    (void)go(&c, 7000, 0, CHANNEL_TRIAL);
    for (uint32_t i = 0; i < CHANNEL_TRIAL; i++)
        channel_count(&c, BYTES, i < CHANNEL_SETTLES ? 1000000 : 6000);
    ck_assert_int_eq(c.way, CHANNEL_DIRECT);
    ck_assert(c.term);
}
END_TEST

/* A trial that was disturbed makes its way a quarter slower at most; one that goes well is believed. */
START_TEST(an_accident_is_forgotten)
{
    struct channel_choice c = {0};
    (void)go(&c, 7000, 0, CHANNEL_TRIAL);
    (void)go(&c, 0, 4000, CHANNEL_TRIAL);
    ck_assert(c.term);
    (void)go(&c, 0, 1000000, CHANNEL_TERM);
    ck_assert_uint_le(c.fs[CHANNEL_DIRECT] * BYTES / 1000000, 5001);
    ck_assert_int_eq(c.way, CHANNEL_BY_COPY);
    (void)go(&c, 3000, 0, CHANNEL_TRIAL);
    ck_assert_uint_le(channel_copy_ns(&c, BYTES), 3001);
}
END_TEST

/* After a stream the receiver answers each message, and copies are faster: both ways are tried again, long before the
 * term ends. The same where everything becomes faster. */
START_TEST(another_traffic)
{
    struct channel_choice c = {0};
    (void)go(&c, 5000, 0, CHANNEL_TRIAL);
    (void)go(&c, 0, 4000, CHANNEL_TRIAL);
    ck_assert_uint_eq(go(&c, 0, 4000, 100), 100);
    ck_assert_uint_le(go(&c, 0, 50000, CHANNEL_TERM), 2 * CHANNEL_PIECE);
    ck_assert_uint_eq(go(&c, 20000, 0, CHANNEL_TERM), CHANNEL_TRIAL);
    ck_assert_uint_eq(go(&c, 0, 50000, CHANNEL_TERM), CHANNEL_TRIAL);
    ck_assert_int_eq(c.way, CHANNEL_BY_COPY);
    ck_assert(c.term);
    for (uint32_t i = 0; c.term && i < CHANNEL_TERM; i++)
        channel_count(&c, BYTES, 5000);
    ck_assert_uint_le(go(&c, 5000, 0, CHANNEL_TERM), CHANNEL_TRIAL);
    (void)go(&c, 0, 4000, CHANNEL_TRIAL);
    ck_assert_int_eq(c.way, CHANNEL_DIRECT);
    ck_assert(c.term);
}
END_TEST

/* Where a message takes milliseconds the first estimate is far too low, since it takes long times for pauses. */
START_TEST(slow_messages)
{
    enum { MIB = 1 << 20, ALL = 20000 };
    struct channel_choice c = {0};
    uint32_t direct = 0;

    for (uint32_t i = 0; i < ALL; i++) {
        direct += c.way == CHANNEL_DIRECT;
        channel_count(&c, MIB, c.way == CHANNEL_DIRECT ? 4000000 : 9000000);
    }
    ck_assert_uint_ge(direct, ALL / 10 * 9);
}
END_TEST

/* A few long pauses are no other traffic. */
START_TEST(pauses_of_a_term)
{
    struct channel_choice c = {0};
    (void)go(&c, 5000, 0, CHANNEL_TRIAL);
    (void)go(&c, 0, 4000, CHANNEL_TRIAL);
    for (uint32_t i = 1; i < CHANNEL_TERM; i++) {
        channel_count(&c, BYTES, i % 10 ? 4000 : 1000000000);
        ck_assert_int_eq(c.way, CHANNEL_DIRECT);
    }
}
END_TEST

/* A pause of the sender says little about the way; a way that is slow again and again loses all the same. */
START_TEST(pauses)
{
    struct channel_choice c = {0};
    (void)go(&c, 8000, 0, CHANNEL_TRIAL);
    for (uint32_t i = 0; i < CHANNEL_TRIAL; i++)
        channel_count(&c, BYTES, i == CHANNEL_TRIAL / 2 ? 1000000000 : 2000);
    ck_assert_int_eq(c.way, CHANNEL_DIRECT);
    ck_assert(c.term);
    c = (struct channel_choice){0};
    (void)go(&c, 8000, 0, CHANNEL_TRIAL);
    ck_assert_uint_eq(go(&c, 0, 1000000000, 5000), CHANNEL_TRIAL);
    ck_assert(c.term);
}
END_TEST

/* Direct messages must be worth the sender's time. */
START_TEST(copies_win_a_draw)
{
    struct channel_choice c = {0};
    (void)go(&c, 8000, 0, CHANNEL_TRIAL);
    (void)go(&c, 0, 7700, CHANNEL_TRIAL);
    ck_assert(c.term);
    ck_assert_int_eq(c.way, CHANNEL_BY_COPY);
    (void)go(&c, 8000, 0, CHANNEL_TERM);
    (void)go(&c, 0, 7400, CHANNEL_TRIAL);
    ck_assert(c.term);
    ck_assert_int_eq(c.way, CHANNEL_DIRECT);
}
END_TEST

START_TEST(classes)
{
    ck_assert_uint_eq(channel_class(0), 0);
    ck_assert_uint_eq(channel_class(8191), 0);
    ck_assert_uint_eq(channel_class(8192), 1);
    ck_assert_uint_eq(channel_class(SIZE_MAX), CHANNEL_CLASSES - 1);
}
END_TEST

/* Messages of a class that take so many ns by each way; how many of n go by sends. */
static uint32_t try(struct channel_trial *t, uint32_t class, uint64_t *now, const uint64_t ns[2], uint32_t n)
{
    struct channel_trial_plan plan = channel_trial_plan(class);
    uint32_t sends = 0;
    for (uint32_t i = 0; i < n; i++) {
        channel_trial_count(t, plan, channel_trial_asks(t, plan) ? *now : 0);
        sends += t->sends;
        *now += ns[t->sends];
    }
    return sends;
}
static const uint64_t sends_win[2] = {400, 300}, puts_win[2] = {300, 400};

START_TEST(puts_or_sends)
{
    struct channel_trial_plan plan = channel_trial_plan((uint32_t)_i);
    struct channel_trial t = {0};
    uint32_t class = (uint32_t)_i, rounds = CHANNEL_TRIAL_ROUNDS * plan.each;
    uint64_t now = 1;
    ck_assert_uint_eq(try(&t, class, &now, sends_win, rounds), rounds / 2);
    ck_assert_uint_eq(try(&t, class, &now, sends_win, 1000), 1000);
    /* After the term the device has become another one. */
    (void)try(&t, class, &now, sends_win, plan.term - 1000);
    (void)try(&t, class, &now, puts_win, rounds);
    ck_assert_uint_eq(try(&t, class, &now, puts_win, 1000), 0);
}
END_TEST

/* Pauses in all rounds but one of each. */
START_TEST(trials_with_pauses)
{
    struct channel_trial t = {0};
    uint32_t class = (uint32_t)_i, half = channel_trial_plan(class).each / 2;
    uint64_t now = 1;
    for (uint32_t round = 0; round < CHANNEL_TRIAL_ROUNDS; round++) {
        (void)try(&t, class, &now, sends_win, half);
        now += round < CHANNEL_TRIAL_ROUNDS - 2 ? 10000000 * (1 + round % 2) : 0;
        (void)try(&t, class, &now, sends_win, half);
    }
    ck_assert_uint_eq(try(&t, class, &now, sends_win, 100), 100);
}
END_TEST

START_TEST(lengths)
{
    ck_assert_uint_eq(channel_trial_of(256), 0);
    ck_assert_uint_eq(channel_trial_of(257), 1);
    ck_assert_uint_eq(channel_trial_of(2049), 2);
    ck_assert_uint_eq(channel_trial_of(SIZE_MAX), CHANNEL_TRIALS - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel-choice");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, both_are_tried_and_the_faster_one_stays);
    tcase_add_test(tc, the_slower_one_has_trials_only);
    tcase_add_test(tc, the_first_ones_do_not_count);
    tcase_add_test(tc, an_accident_is_forgotten);
    tcase_add_test(tc, another_traffic);
    tcase_add_test(tc, pauses_of_a_term);
    tcase_add_test(tc, slow_messages);
    tcase_add_test(tc, pauses);
    tcase_add_test(tc, copies_win_a_draw);
    tcase_add_test(tc, classes);
    tcase_add_loop_test(tc, puts_or_sends, 0, CHANNEL_TRIALS);
    tcase_add_loop_test(tc, trials_with_pauses, 0, CHANNEL_TRIALS);
    tcase_add_test(tc, lengths);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
