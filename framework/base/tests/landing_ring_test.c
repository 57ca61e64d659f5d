/* The landing ring, both ends with a simulated transport between them: wrapping, order, room, credit, the end. */
/* one thread */
#include <check.h>
#include "support/landing_pair.h"
#include "support/run_suite.h"

/* ---- sizes ---- */

START_TEST(rings_that_cannot_be)
{
    static const uint32_t bad[] = {0, 1, 64, 128, 192, 300, 1000, 3u << 10, 2u << 20, 0x80000000, UINT32_MAX};
    struct st_landing_out out;
    struct st_landing_in in;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(st_landing_out_create(&out, NULL, bad[i], 0, put, &p), STRATA_ERR_ARG);
        CHECK_EQ(st_landing_in_create(&in, NULL, bad[i], 0, tell, &p), STRATA_ERR_ARG);
    }
    CHECK_EQ(st_landing_out_create(&out, NULL, 256, ST_LANDING_NAMES, put, &p), STRATA_ERR_ARG);
    CHECK_EQ(st_landing_out_create(&out, (char *)8, 256, 0, put, &p), STRATA_ERR_ARG);
    CHECK_EQ(st_landing_in_create(&in, NULL, ST_LANDING_MOST, ST_LANDING_NAMES - 1, tell, &p), STRATA_OK);
    CHECK_EQ(st_landing_in_bytes(&in), ST_LANDING_MOST / ST_LANDING_LINE / 8);
    st_landing_in_destroy(&in);
    CHECK_EQ(st_landing_in_bytes(&in), 0);
}
END_TEST

/* ---- wrapping ---- */

/* Every length at every line of a ring of 8 lines: the first message moves the place, the second is looked at. */
START_TEST(wraps_at_every_offset)
{
    struct st_landing_view v;
    for (uint32_t line = 0; line < 8; line++)
        for (uint32_t len = 0; len <= 8 * 64 - 16; len++) {
            begin(512, 1 + len);
            for (uint32_t i = 0; i < line; i++) {
                CHECK_EQ(try_send(48, i, false), STRATA_OK);
                settle();
                take(48, i);
                settle();
            }
            uint32_t n = p.n_puts;
            while (try_send(len, 99, false) == STRATA_ERR_AGAIN)
                settle();
            settle();
            CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
            check_message(&v, len, 99);
            uint32_t rest = (8 - (uint32_t)(v.end - landing_lines(len)) % 8) * 64 - 16; /* a wish moves it */
            CHECK_EQ(v.first_len, len < rest ? len : rest);
            CHECK(p.n_puts - n >= (len > rest ? 2u : 1u));
            CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
            settle();
            end();
        }
}
END_TEST

/* ---- order ---- */

/* Both ends at random over a transport in no order; what is held is released in any order. */
static void traffic(uint32_t size, uint64_t seed, int refuse, uint32_t messages, bool small)
{
    struct st_landing_view held[5];
    uint32_t number[5];
    uint32_t most = landing_longest(size / 64), *len = calloc(messages, sizeof *len);
    uint32_t sent = 0, got = 0, n_held = 0, released = 0, idle = 0;
    uint32_t hold = small ? 5 : 1;
    begin(size, seed);
    p.refuse = refuse;
    for (uint32_t i = 0; i < messages; i++)
        len[i] =
            rnd_below(&p.rnd, 3) && small ? rnd_below(&p.rnd, 100) : rnd_below(&p.rnd, (small ? most / 6 : most) + 1);
    bool ended = false;
    while (!(st_landing_out_finished(&p.out) && st_landing_in_finished(&p.in))) {
        CHECK_MSG(idle++ < 200000, "nothing moves: sent %u, got %u, released %u of %u", sent, got, released, messages);
        if (sent < messages && chance(50) && try_send(len[sent], sent, chance(30)) == STRATA_OK)
            sent++, idle = 0;
        if (sent == messages && !ended && st_landing_end(&p.out) == STRATA_OK)
            ended = true;
        if (n_held < hold && chance(30)) {
            int rc = st_landing_peek(&p.in, &held[n_held]);
            if (rc == STRATA_OK) {
                check_message(&held[n_held], len[got], got);
                number[n_held++] = got++, idle = 0;
            } else {
                CHECK(rc == STRATA_ERR_AGAIN || (rc == ST_LANDING_ENDED && ended && got == messages));
            }
        }
        if (n_held && (chance(20) || n_held == hold)) {
            uint32_t k = rnd_below(&p.rnd, n_held);
            check_message(&held[k], len[number[k]], number[k]); /* nobody has written there */
            CHECK_EQ(st_landing_release(&p.in, &held[k]), STRATA_OK);
            CHECK_EQ(st_landing_release(&p.in, &held[k]), STRATA_ERR_ARG);
            held[k] = held[--n_held];
            number[k] = number[n_held];
            released++, idle = 0;
        }
        step();
        CHECK(p.in.credits - p.in.acknowledged <= ST_LANDING_CREDITS);
        CHECK_MSG(p.out.rc == STRATA_OK && p.in.rc == STRATA_OK, "broken: %s / %s", p.out.why ? p.out.why : "",
                  p.in.why ? p.in.why : "");
    }
    CHECK_EQ(released, messages);
    CHECK_EQ(p.n_credits, 0);
    free(len);
    end();
}

static const uint64_t seeds[] = {1, 2, 3, 5, 8, 13, 21, 34, 1234567, 0xdeadbeef};
static const uint32_t sizes[] = {256, 512, 1024, 4096, 65536};
enum { SEEDS = sizeof seeds / sizeof seeds[0], SIZES = sizeof sizes / sizeof sizes[0] };

START_TEST(order_at_random)
{
    uint64_t seed = seeds[_i % SEEDS];
    uint32_t size = sizes[_i / SEEDS];
    uint32_t n = size > 10000 ? 300 : 3000;
    traffic(size, seed, 0, n, false);
    traffic(size, seed, 0, n, true);
    traffic(size, seed, 60, n / 2, true);
    traffic(size, seed, 60, n / 4, false);
}
END_TEST

/* The notices of ten messages come backwards. */
START_TEST(notices_backwards)
{
    struct st_landing_view v;
    begin(4096, 1);
    for (uint32_t i = 0; i < 10; i++)
        CHECK_EQ(try_send(100, i, false), STRATA_OK);
    for (uint32_t i = 10; i-- > 0;) {
        CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_ERR_AGAIN);
        CHECK(!p.in.ready);
        move(&p.put[i]);
        p.put[i].told = true;
        st_landing_notice(&p.in, p.put[i].notice);
    }
    CHECK(p.in.ready);
    for (uint32_t i = 0; i < 10; i++)
        take(100, i);
    settle();
    end();
}
END_TEST

/* ---- room and credit ---- */

START_TEST(completion_gives_no_room)
{
    struct st_landing_view v;
    uint32_t n = 0;
    begin(1024, 1);
    while (try_send(48, n, false) == STRATA_OK)
        n++, settle();
    CHECK_EQ(n, 16); /* all puts are done, and all is visible */
    CHECK_EQ(p.out.n_puts, 0);
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    settle();
    CHECK_EQ(try_send(48, n, false), STRATA_ERR_AGAIN); /* peeked is not released */
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    settle();
    CHECK_EQ(p.n_tells, 0); /* less than a quarter */
    for (uint32_t i = 1; i < 4; i++)
        take(48, i);
    CHECK_EQ(p.n_tells, 1);
    CHECK_EQ(try_send(48, n, false), STRATA_ERR_AGAIN); /* it has not arrived */
    settle();
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(try_send(48, n + i, false), STRATA_OK);
    CHECK_EQ(try_send(48, n, false), STRATA_ERR_AGAIN);
    settle();
    for (uint32_t i = 4; i < 20; i++)
        take(48, i);
    settle();
    end();
}
END_TEST

/* The receiver has consumed the slot, but the sender's transport still reads the staging ring. */
START_TEST(staging_is_free_when_the_put_is_done)
{
    uint32_t n = 0;
    begin(256, 1);
    while (try_send(48, n, false) == STRATA_OK)
        n++;
    CHECK_EQ(n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        move(&p.put[i]);
        p.put[i].told = true;
        st_landing_notice(&p.in, p.put[i].notice);
        take(48, i);
        while (step_credit())
            ;
    }
    CHECK_EQ(p.out.released, 3); /* the fourth credit waits for acknowledgements */
    CHECK_EQ(try_send(48, n, false), STRATA_ERR_AGAIN);
    p.put[1].used = false;
    st_landing_put_done(&p.out, 1, STRATA_OK); /* not the oldest */
    CHECK_EQ(try_send(48, n, false), STRATA_ERR_AGAIN);
    p.put[0].used = false;
    st_landing_put_done(&p.out, 0, STRATA_OK);
    CHECK_EQ(try_send(48, n, false), STRATA_OK);
    CHECK_EQ(try_send(48, n + 1, false), STRATA_OK);
    CHECK_EQ(try_send(48, n, false), STRATA_ERR_AGAIN);
    settle();
    take(48, 4);
    take(48, 5);
    settle();
    end();
}
END_TEST

/* A message that needs more than three quarters of the ring finds it although less than a quarter was released. */
START_TEST(large_messages_ask)
{
    begin(1024, 1);
    CHECK_EQ(try_send(48, 0, false), STRATA_OK);
    settle();
    take(48, 0);
    settle();
    CHECK_EQ(p.n_tells, 0);
    CHECK_EQ(try_send(1024 - 16, 1, false), STRATA_ERR_AGAIN); /* it needs all 16 lines */
    uint32_t puts = p.n_puts;
    CHECK_EQ(try_send(1024 - 16, 1, false), STRATA_ERR_AGAIN);
    CHECK_EQ(p.n_puts, puts); /* it has asked once */
    settle();
    CHECK_EQ(p.n_tells, 1);
    CHECK_EQ(try_send(1024 - 16, 1, false), STRATA_OK);
    settle();
    take(1024 - 16, 1);
    settle();
    CHECK_EQ(try_send(1024 - 15, 2, false), STRATA_ERR_ARG);
    CHECK_EQ(try_send(UINT32_MAX, 2, false), STRATA_ERR_ARG);
    /* Three quarters need no asking. */
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(try_send(0, i, false), STRATA_OK);
        settle();
        take(0, i);
        settle();
    }
    uint32_t tells = p.n_tells;
    CHECK_EQ(try_send(12 * 64 - 16, 1, false), STRATA_OK);
    settle();
    CHECK_EQ(p.n_tells, tells);
    end();
}
END_TEST

/* A message of a quarter of the ring brings its credit itself: nothing is asked for behind it. */
START_TEST(a_quarter_is_not_asked_for)
{
    begin(1024, 1);
    CHECK_EQ(try_send(4 * 64 - 16, 0, false), STRATA_OK);
    settle();
    uint32_t puts = p.n_puts;
    CHECK_EQ(try_send(1024 - 16, 1, false), STRATA_ERR_AGAIN);
    CHECK_EQ(p.n_puts, puts);
    take(4 * 64 - 16, 0);
    settle();
    CHECK_EQ(p.n_tells, 1);
    CHECK_EQ(try_send(1024 - 16, 1, false), STRATA_OK);
    settle();
    take(1024 - 16, 1);
    settle();
    /* One line less does not. */
    CHECK_EQ(try_send(3 * 64 - 16, 2, false), STRATA_OK);
    settle();
    puts = p.n_puts;
    CHECK_EQ(try_send(1024 - 16, 3, false), STRATA_ERR_AGAIN);
    CHECK_EQ(p.n_puts, puts + 1);
    take(3 * 64 - 16, 2);
    settle();
    CHECK_EQ(try_send(1024 - 16, 3, false), STRATA_OK);
    settle();
    take(1024 - 16, 3);
    settle();
    end();
}
END_TEST

/* A message is held while the sender asks: the answer comes when it is released. */
START_TEST(asks_while_a_message_is_held)
{
    struct st_landing_view v;
    begin(1024, 1);
    CHECK_EQ(try_send(10, 0, false), STRATA_OK);
    settle();
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    CHECK_EQ(try_send(1000, 1, false), STRATA_ERR_AGAIN);
    settle();
    CHECK_EQ(p.n_tells, 0);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    CHECK_EQ(p.n_tells, 1);
    settle();
    CHECK_EQ(try_send(1000, 1, false), STRATA_OK);
    settle();
    take(1000, 1);
    settle();
    end();
}
END_TEST

/* Credits overtake each other: they are taken in order. */
START_TEST(credits_backwards)
{
    begin(1024, 1);
    for (uint32_t i = 0; i < 16; i++) {
        CHECK_EQ(try_send(48, i, false), STRATA_OK);
        for (uint32_t k = 0; k < PUTS; k++)
            while (step_put(k))
                ;
        take(48, i);
    }
    CHECK_EQ(p.n_credits, 3); /* the fourth is kept for the end */
    for (uint32_t i = 3; i-- > 0;) {
        st_landing_credit(&p.out, p.credit[i]);
        CHECK_EQ(p.out.released, i == 0 ? 12 : 0);
        CHECK_EQ(p.out.seen, i == 0 ? 3 : 0);
    }
    p.n_credits = 0;
    CHECK_EQ(try_send(48, 16, false), STRATA_OK); /* acknowledges them */
    settle();
    CHECK_EQ(p.n_tells, 4);
    CHECK_EQ(p.out.released, 16);
    take(48, 16);
    settle();
    end();
}
END_TEST

/* ---- puts ---- */

START_TEST(kept_messages_join)
{
    begin(4096, 1);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(try_send(10 * i, i, true), STRATA_OK);
    settle();
    CHECK_EQ(p.n_puts, 0);
    CHECK_EQ(try_send(3, 5, false), STRATA_OK);
    CHECK_EQ(p.n_puts, 1);
    CHECK_EQ(p.put[0].len, 5 * 64 + 16 + 3); /* no more than there is */
    settle();
    for (uint32_t i = 0; i < 5; i++)
        take(10 * i, i);
    take(3, 5);
    CHECK_EQ(try_send(7, 6, true), STRATA_OK);
    CHECK_EQ(st_landing_flush(&p.out), STRATA_OK);
    settle();
    take(7, 6);
    end();
}
END_TEST

/* Messages that are kept do not keep the sender from room: when it is needed they go. */
START_TEST(kept_messages_go_when_room_is_needed)
{
    uint32_t n = 0;
    begin(1024, 1);
    while (try_send(48, n, true) == STRATA_OK)
        n++;
    CHECK_EQ(n, 16);
    settle();
    for (uint32_t i = 0; i < 16; i++)
        take(48, i);
    settle();
    end();
}
END_TEST

START_TEST(refused_puts_wait_and_join)
{
    begin(4096, 1);
    p.refuse = 100;
    for (uint32_t i = 0; i < 5; i++) {
        CHECK_EQ(try_send(10, i, false), STRATA_OK);
        CHECK(p.out.starved);
    }
    CHECK_EQ(st_landing_flush(&p.out), STRATA_ERR_AGAIN);
    p.refuse = 0;
    CHECK_EQ(st_landing_flush(&p.out), STRATA_OK);
    CHECK(!p.out.starved);
    CHECK_EQ(p.n_puts, 1);
    settle();
    for (uint32_t i = 0; i < 5; i++)
        take(10, i);
    end();
}
END_TEST

START_TEST(puts_are_limited)
{
    begin(65536, 1);
    for (uint32_t i = 0; i < 100; i++)
        CHECK_EQ(try_send(10, i, false), STRATA_OK);
    CHECK_EQ(p.n_puts, PUTS);
    settle();
    CHECK(p.n_puts < PUTS + 3); /* the others joined */
    for (uint32_t i = 0; i < 100; i++)
        take(10, i);
    end();
}
END_TEST

/* ---- the end ---- */

START_TEST(the_end)
{
    struct st_landing_view v;
    begin(1024, 1);
    CHECK_EQ(try_send(100, 0, false), STRATA_OK);
    CHECK_EQ(st_landing_end(&p.out), STRATA_OK);
    CHECK_EQ(st_landing_end(&p.out), STRATA_ERR_STATE);
    CHECK_EQ(try_send(100, 1, false), STRATA_ERR_STATE);
    settle();
    CHECK(!st_landing_out_finished(&p.out) && !st_landing_in_finished(&p.in));
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    struct st_landing_view none = v;
    CHECK_EQ(st_landing_peek(&p.in, &none), ST_LANDING_ENDED);
    settle();
    CHECK(!st_landing_out_finished(&p.out) && !st_landing_in_finished(&p.in));
    check_message(&v, 100, 0);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_ERR_ARG);
    CHECK(st_landing_in_finished(&p.in));
    CHECK(!st_landing_out_finished(&p.out));
    settle();
    CHECK(st_landing_out_finished(&p.out));
    end();
}
END_TEST

START_TEST(the_end_waits_for_room)
{
    uint32_t n = 0;
    begin(256, 1);
    while (try_send(48, n, false) == STRATA_OK)
        n++;
    CHECK_EQ(st_landing_end(&p.out), STRATA_ERR_AGAIN);
    settle();
    take(48, 0);
    settle();
    CHECK_EQ(st_landing_end(&p.out), STRATA_OK);
    settle();
    for (uint32_t i = 1; i < n; i++)
        take(48, i);
    settle();
    CHECK(st_landing_out_finished(&p.out) && st_landing_in_finished(&p.in));
    end();
}
END_TEST

/* ---- wrong use ---- */

START_TEST(wrong_use)
{
    struct st_landing_view v, w;
    begin(1024, 1);
    CHECK_EQ(st_landing_commit(&p.out, 0, false), STRATA_ERR_ARG); /* nothing is reserved */
    CHECK_EQ(st_landing_reserve(&p.out, 10, &v), STRATA_OK);
    CHECK_EQ(st_landing_commit(&p.out, 11, false), STRATA_ERR_ARG);
    st_landing_fill(&v, "0123456789");
    CHECK_EQ(st_landing_commit(&p.out, 4, false), STRATA_OK); /* less than was reserved */
    CHECK_EQ(st_landing_commit(&p.out, 4, false), STRATA_ERR_ARG);
    CHECK_EQ(st_landing_reserve(&p.out, 10, &v), STRATA_OK);
    CHECK_EQ(st_landing_reserve(&p.out, 1009, &v), STRATA_ERR_ARG);
    CHECK_EQ(st_landing_commit(&p.out, 10, false), STRATA_ERR_ARG); /* that reservation has ended */
    settle();
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    CHECK_EQ(v.first_len, 4);
    CHECK_EQ(memcmp(v.first, "0123", 4), 0);
    w = v;
    w.end++;
    CHECK_EQ(st_landing_release(&p.in, &w), STRATA_ERR_ARG);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_ERR_ARG);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("landing-ring");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, rings_that_cannot_be);
    tcase_add_test(tc, wraps_at_every_offset);
    tcase_add_loop_test(tc, order_at_random, 0, SEEDS * SIZES);
    tcase_add_test(tc, notices_backwards);
    tcase_add_test(tc, completion_gives_no_room);
    tcase_add_test(tc, staging_is_free_when_the_put_is_done);
    tcase_add_test(tc, large_messages_ask);
    tcase_add_test(tc, a_quarter_is_not_asked_for);
    tcase_add_test(tc, asks_while_a_message_is_held);
    tcase_add_test(tc, credits_backwards);
    tcase_add_test(tc, kept_messages_join);
    tcase_add_test(tc, kept_messages_go_when_room_is_needed);
    tcase_add_test(tc, refused_puts_wait_and_join);
    tcase_add_test(tc, puts_are_limited);
    tcase_add_test(tc, the_end);
    tcase_add_test(tc, the_end_waits_for_room);
    tcase_add_test(tc, wrong_use);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
