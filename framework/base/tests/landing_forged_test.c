/* Lost puts, and slots, notices and credits that cannot be true, break a landing ring. */
#include <check.h>
#include "support/landing_pair.h"
#include "support/run_suite.h"

START_TEST(a_lost_put_breaks_the_sender)
{
    struct st_landing_view v;
    begin(1024, 1);
    CHECK_EQ(try_send(100, 0, false), STRATA_OK);
    CHECK_EQ(try_send(100, 1, false), STRATA_OK);
    st_landing_put_done(&p.out, 1, STRATA_ERR_PEER);
    CHECK_EQ(p.out.rc, STRATA_ERR_PEER);
    st_landing_out_fail(&p.out, STRATA_ERR_STATE); /* the first reason stays */
    CHECK_EQ(try_send(1, 2, false), STRATA_ERR_PEER);
    CHECK_EQ(st_landing_commit(&p.out, 0, false), STRATA_ERR_PEER);
    CHECK_EQ(st_landing_flush(&p.out), STRATA_ERR_PEER);
    CHECK_EQ(st_landing_end(&p.out), STRATA_ERR_PEER);
    st_landing_put_done(&p.out, 0, STRATA_ERR_PEER);
    CHECK(!st_landing_out_finished(&p.out));
    st_landing_in_fail(&p.in, STRATA_ERR_PEER);
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_ERR_PEER);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_ERR_PEER);
    end();
}
END_TEST

/* Messages that had arrived when the sender was lost are handed out, then the error; after an end slot, the end. */
static void lose(bool end_first)
{
    struct st_landing_view v[3];
    begin(1024, 1);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(try_send(100, i, false), STRATA_OK);
    if (end_first)
        CHECK_EQ(st_landing_end(&p.out), STRATA_OK);
    settle();
    CHECK_EQ(st_landing_peek(&p.in, &v[0]), STRATA_OK);
    st_landing_in_fail(&p.in, STRATA_ERR_PEER);
    st_landing_notice(&p.in, UINT32_MAX); /* is not looked at any more */
    CHECK_EQ(st_landing_release(&p.in, &v[0]), STRATA_OK);
    for (uint32_t i = 1; i < 3; i++) {
        CHECK_EQ(st_landing_peek(&p.in, &v[i]), STRATA_OK);
        check_message(&v[i], 100, i);
    }
    CHECK_EQ(st_landing_release(&p.in, &v[1]), STRATA_OK);
    CHECK_EQ(st_landing_peek(&p.in, &v[0]), end_first ? ST_LANDING_ENDED : STRATA_ERR_PEER);
    CHECK_EQ(st_landing_release(&p.in, &v[2]), STRATA_OK);
    CHECK_EQ(st_landing_release(&p.in, &v[2]), STRATA_ERR_PEER);
    end();
}
START_TEST(a_lost_ring_gives_what_had_arrived)
{
    lose(_i);
}
END_TEST

/* The same where the loss shows by a credit that cannot be given. */
START_TEST(a_lost_credit_leaves_what_had_arrived)
{
    struct st_landing_view v;
    begin(1024, 1);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(try_send(300, i, false), STRATA_OK);
    settle();
    p.lost = STRATA_ERR_PEER;
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
        check_message(&v, 300, i);
        CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
        CHECK_EQ(p.in.rc, STRATA_ERR_PEER);
    }
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_ERR_PEER);
    end();
}
END_TEST

/* Writes a slot as a peer could, at a line, and announces it. Its number counts from 0. */
static void forge(uint32_t line, struct landing_slot slot)
{
    slot.number += LANDING_FIRST;
    memcpy(p.ring + (size_t)line * 64, &slot, sizeof slot);
    st_landing_notice(&p.in, (uint32_t)NAME << LANDING_NAME_SHIFT | line);
}
static void broken(const char *why)
{
    struct st_landing_view v;
    CHECK_MSG(p.in.rc == STRATA_ERR_PROTOCOL, "no error where '%s' was expected", why);
    CHECK_MSG(strcmp(p.in.why, why) == 0, "%s where %s was expected", p.in.why, why);
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_ERR_PROTOCOL);
    forge(0, (struct landing_slot){0}); /* is not looked at any more */
    end();
}

START_TEST(forged_slots)
{
    static const struct {
        struct landing_slot slot;
        const char *why;
    } bad[] = {
        {{.number = 1}, "a slot out of turn"},
        {{.number = UINT32_MAX}, "a slot out of turn"},
        {{.flags = 16}, "a slot with unknown flags"},
        {{.flags = UINT32_MAX}, "a slot with unknown flags"},
        {{.flags = LANDING_ASK | LANDING_END}, "a slot with unknown flags"},
        {{.flags = LANDING_ASK | LANDING_MARKED}, "a slot with unknown flags"},
        {{.flags = LANDING_ASK, .len = 1}, "a slot with unknown flags"},
        {{.flags = LANDING_END, .len = 1}, "a slot with unknown flags"},
        {{.len = 1024 - 15}, "a slot that is longer than the credit"},
        {{.len = UINT32_MAX}, "a slot that is longer than the credit"},
        {{.len = UINT32_MAX - 15}, "a slot that is longer than the credit"},
        {{.seen = 1}, "a slot that acknowledges what was not given"},
        {{.seen = UINT32_MAX}, "a slot that acknowledges what was not given"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(1024, 1);
        forge(0, bad[i].slot);
        broken(bad[i].why);
    }
}
END_TEST

/* The ring is full but for one line. */
START_TEST(forged_slots_behind_others)
{
    begin(1024, 1);
    forge(0, (struct landing_slot){.len = 14 * 64});
    CHECK(p.in.ready);
    struct st_landing_view v;
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    forge(15, (struct landing_slot){.number = 1, .len = 49});
    broken("a slot that is longer than the credit");

    begin(1024, 1);
    forge(0, (struct landing_slot){.len = 14 * 64, .flags = LANDING_MORE});
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK); /* and the next is there, of number 0 */
    broken("a slot out of turn");
}
END_TEST

/* A put never crosses the ring's end: what is said to follow there needs a notice of its own. */
START_TEST(more_at_the_end)
{
    struct landing_slot next = {.number = 2, .len = 5};
    struct st_landing_view v;
    begin(1024, 1);
    forge(0, (struct landing_slot){.len = 8 * 64 - 16});
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    forge(8, (struct landing_slot){.number = 1, .len = 8 * 64 - 16, .flags = LANDING_MORE});
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    memcpy(p.ring, &next, sizeof next);
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_ERR_AGAIN);
    forge(0, next);
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    CHECK_EQ(v.first_len, 5);
    end();
}
END_TEST

START_TEST(forged_notices)
{
    static const uint32_t name = (uint32_t)NAME << LANDING_NAME_SHIFT;
    static const uint32_t bad[] = {16, 17, LANDING_LINE_MASK, 1u << 14, 1u << 16, 1u << 27, (1u << 28) - 1};
    struct st_landing_view v;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(1024, 1);
        st_landing_notice(&p.in, name | bad[i]);
        broken("a malformed notice");
    }
    begin(1024, 1);
    st_landing_notice(&p.in, name | 5);
    st_landing_notice(&p.in, name | 5);
    broken("a notice that came before");

    begin(1024, 1);
    forge(0, (struct landing_slot){.len = 100}); /* lines 0 and 1, ready */
    st_landing_notice(&p.in, name | 1);
    broken("a notice of data without credit");

    begin(1024, 1);
    forge(0, (struct landing_slot){.len = 100});
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK); /* held */
    st_landing_notice(&p.in, name | 0);
    broken("a notice of data without credit");

    begin(1024, 1);
    forge(0, (struct landing_slot){.flags = LANDING_END});
    CHECK(p.in.ended);
    st_landing_notice(&p.in, name | 3);
    broken("a malformed notice");
}
END_TEST

/* A notice of memory in which nothing was written. */
START_TEST(cleared_memory_is_no_slot)
{
    begin(1024, 1);
    memset(p.ring, 0, 1024);
    st_landing_notice(&p.in, (uint32_t)NAME << LANDING_NAME_SHIFT);
    broken("a slot out of turn");
}
END_TEST

/* Data that come with the notice: up to the ring's end, not beyond. */
START_TEST(forged_data)
{
    static const uint32_t name = (uint32_t)NAME << LANDING_NAME_SHIFT;
    char data[128] = {0};
    struct landing_slot slot = {.len = 100, .number = LANDING_FIRST};
    struct st_landing_view v;
    memcpy(data, &slot, sizeof slot);
    begin(1024, 1);
    st_landing_arrive(&p.in, name | 0, data, 116);
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    CHECK_EQ(st_landing_length(&v), 100);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    st_landing_arrive(&p.in, name | 15, data, 65);
    broken("data for beyond the ring");

    begin(1024, 1);
    st_landing_arrive(&p.in, name | 16, data, 0);
    broken("data for beyond the ring");

    begin(1024, 1);
    st_landing_arrive(&p.in, name | 1u << 16, data, 64);
    broken("a malformed notice");
}
END_TEST

/* Slots by messages, to the ring or to a reader that waits. */
static void arrive(uint32_t notice, struct landing_slot slot, uint32_t len, char *to)
{
    static const char data[2000];
    slot.number += LANDING_FIRST;
    (void)st_landing_arrive_slot(&p.in, notice, &slot, data, len, to, 1000);
}
START_TEST(forged_slots_by_messages)
{
    const uint32_t name = (uint32_t)NAME << LANDING_NAME_SHIFT;
    static char buffer[1000];
    char *to = _i ? buffer : NULL;
    begin(1024, 1);
    arrive(name | 16, (struct landing_slot){.len = 10}, 10, to);
    broken("a malformed notice");
    begin(1024, 1);
    arrive(name | 1u << 16, (struct landing_slot){.len = 10}, 10, to);
    broken("a malformed notice");
    begin(1024, 1);
    arrive(name, (struct landing_slot){.len = 11}, 10, to);
    broken("a slot that is longer than its message");
    begin(1024, 1);
    arrive(name, (struct landing_slot){.len = 1009}, 1009, to);
    broken("a slot that is longer than its message");
    begin(1024, 1);
    arrive(name, (struct landing_slot){.len = 10, .number = 1}, 10, to);
    broken("a slot out of turn");
    begin(1024, 1);
    arrive(name, (struct landing_slot){.len = 10, .seen = 1}, 10, to);
    broken("a slot that acknowledges what was not given");
    begin(1024, 1);
    arrive(name, (struct landing_slot){.len = 10, .flags = 1u << 7}, 10, to);
    broken("a slot with unknown flags");
    begin(1024, 1);
    arrive(name | 8, (struct landing_slot){.len = 10, .number = 1}, 10, to);
    arrive(name | 8, (struct landing_slot){.len = 10, .number = 1}, 10, to);
    broken("a notice that came before");
    begin(1024, 1);
    arrive(name, (struct landing_slot){.len = 500}, 500, NULL);
    arrive(name | 1, (struct landing_slot){.len = 10, .number = 1}, 10, to);
    broken("a notice of data without credit");
}
END_TEST

static uint32_t credit(uint32_t number, uint32_t released)
{
    return 1u << 27 | (uint32_t)NAME << LANDING_NAME_SHIFT | (number & 3) << LANDING_NUMBER_SHIFT |
           (released & LANDING_PLACE_MASK);
}

START_TEST(forged_credits)
{
    static const uint32_t bad[] = {0, 3, 4, 16, 17, 0x3fff, 0x4000, 0x7fff};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(1024, 1);
        CHECK_EQ(try_send(100, 0, false), STRATA_OK); /* 2 lines */
        st_landing_credit(&p.out, credit(1, bad[i]));
        CHECK_EQ(p.out.rc, STRATA_ERR_PROTOCOL);
        CHECK(strcmp(p.out.why, "a credit for what was not sent") == 0);
        CHECK_EQ(try_send(1, 1, false), STRATA_ERR_PROTOCOL);
        st_landing_credit(&p.out, credit(1, 1)); /* is not looked at any more */
        CHECK_EQ(p.out.released, 0);
        end();
    }
    begin(1024, 1);
    CHECK_EQ(try_send(100, 0, false), STRATA_OK);
    st_landing_credit(&p.out, credit(2, 1));
    CHECK_EQ(p.out.rc, STRATA_OK);
    st_landing_credit(&p.out, credit(2, 2));
    CHECK_EQ(p.out.rc, STRATA_ERR_PROTOCOL);
    CHECK(strcmp(p.out.why, "a credit that was given before") == 0);
    end();
    begin(1024, 1);
    st_landing_credit(&p.out, credit(1, 1) & ~(1u << 27));
    CHECK_EQ(p.out.rc, STRATA_ERR_PROTOCOL);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("landing-forged");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, a_lost_put_breaks_the_sender);
    tcase_add_loop_test(tc, a_lost_ring_gives_what_had_arrived, 0, 2);
    tcase_add_test(tc, a_lost_credit_leaves_what_had_arrived);
    tcase_add_test(tc, forged_slots);
    tcase_add_test(tc, forged_slots_behind_others);
    tcase_add_test(tc, more_at_the_end);
    tcase_add_test(tc, forged_notices);
    tcase_add_test(tc, cleared_memory_is_no_slot);
    tcase_add_test(tc, forged_data);
    tcase_add_loop_test(tc, forged_slots_by_messages, 0, 2);
    tcase_add_test(tc, forged_credits);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
