/* The landing ring's short ways, st_landing_send, st_landing_send_by and st_landing_take, mixed with the long ones:
 * they leave the same bytes, numbers and credits, and say when they are not for a message. */
#include <check.h>
#include "support/landing_pair.h"
#include "support/run_suite.h"

static int send_short(uint32_t len, uint64_t number)
{
    char bytes[ST_LANDING_MOST / 8];
    CHECK(len <= sizeof bytes);
    pattern_fill(bytes, len, number);
    if (!st_landing_goes_at_once(&p.out, len))
        return STRATA_ERR_AGAIN;
    int rc = st_landing_send(&p.out, bytes, len);
    CHECK(rc == STRATA_OK || (p.refuse && rc == STRATA_ERR_AGAIN));
    return rc;
}
static int send_by(uint32_t len, uint64_t number)
{
    char bytes[ST_LANDING_MOST / 8];
    CHECK(len <= sizeof bytes);
    pattern_fill(bytes, len, number);
    if (!st_landing_goes_by(&p.out, len))
        return STRATA_ERR_AGAIN;
    int rc = st_landing_send_by(&p.out, bytes, len, send_message, &p);
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
    return rc;
}
/* Both must have the mark or not, as `number` says. */
static int send_any(uint32_t len, uint64_t number)
{
    int rc = number % 3 == 0 ? STRATA_ERR_AGAIN : chance(40) ? send_by(len, number) : send_short(len, number);
    return rc == STRATA_ERR_AGAIN ? try_send(len, number, chance(20)) : rc;
}
static int take_short(uint32_t len, uint64_t number)
{
    char bytes[ST_LANDING_MOST / 8];
    uint32_t got;
    bool marked = p.in.marked;
    int rc = st_landing_take(&p.in, bytes, sizeof bytes, &got);
    if (rc == STRATA_ERR_UNSUPPORTED)
        CHECK(marked);
    if (rc != STRATA_OK)
        return rc;
    CHECK(number % 3 != 0);
    CHECK_EQ(got, len);
    CHECK_EQ(pattern_check(bytes, len, number), -1);
    return rc;
}
/* A reader that waits for the next message, if there is none, with room for it or a little less. True: it had come. */
static bool awaited(uint32_t len, uint64_t number)
{
    static char bytes[ST_LANDING_MOST / 8];
    if (p.to_taken) {
        CHECK(number % 3 != 0);
        CHECK_EQ(p.to_len, len);
        CHECK_EQ(pattern_check(bytes, len, number), -1);
        CHECK(pattern_guard_ok(bytes + p.to_size));
        p.to_taken = false;
        return true;
    }
    p.to = NULL;
    if (!p.in.ready && chance(70)) {
        p.to = bytes;
        p.to_size = chance(20) && len ? len - 1 : len;
        pattern_guard_set(bytes + p.to_size);
    }
    return false;
}
static int take_any(uint32_t len, uint64_t number)
{
    struct st_landing_view v;
    if (awaited(len, number))
        return STRATA_OK;
    if (p.to)
        return STRATA_ERR_AGAIN;
    int rc = chance(60) ? take_short(len, number) : STRATA_ERR_UNSUPPORTED;
    if (rc != STRATA_ERR_UNSUPPORTED)
        return rc;
    rc = st_landing_peek(&p.in, &v);
    if (rc == STRATA_OK) {
        check_message(&v, len, number);
        CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    }
    return rc;
}

static void traffic(uint32_t size, uint64_t seed, int refuse, int at_once)
{
    uint32_t sent = 0, got = 0, idle = 0, messages = 2000, most = landing_longest(size / 64);
    uint32_t *len = calloc(messages, sizeof *len);
    bool ended = false;
    begin(size, seed);
    p.refuse = refuse;
    p.at_once = at_once;
    for (uint32_t i = 0; i < messages; i++)
        len[i] = rnd_below(&p.rnd, chance(70) && most > 100 ? 100 : most < 4000 ? most + 1 : 4000);
    while (got < messages || !(st_landing_out_finished(&p.out) && st_landing_in_finished(&p.in))) {
        CHECK_MSG(idle++ < 200000, "nothing moves: sent %u, got %u", sent, got);
        if (sent < messages && chance(50) && send_any(len[sent], sent) == STRATA_OK)
            sent++, idle = 0;
        if (sent == messages && !ended)
            ended = st_landing_end(&p.out) == STRATA_OK;
        if (got < messages && chance(50) && take_any(len[got], got) == STRATA_OK)
            got++, idle = 0;
        step();
        CHECK(p.in.credits - p.in.acknowledged <= ST_LANDING_CREDITS);
        CHECK_MSG(p.out.rc == STRATA_OK && p.in.rc == STRATA_OK, "broken: %s / %s", p.out.why ? p.out.why : "",
                  p.in.why ? p.in.why : "");
    }
    CHECK_EQ(got, messages);
    CHECK_EQ(p.n_credits, 0);
    free(len);
    end();
}

static const uint32_t sizes[] = {256, 1024, 65536};
START_TEST(mixed_at_random)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        traffic(sizes[_i], seed, seed % 2 ? 0 : 50, seed % 3 ? 60 : 100);
}
END_TEST

/* When a message does not go at once: something is under way or kept, no room, it would wrap, the ring has ended. */
START_TEST(not_at_once)
{
    begin(256, 1);
    CHECK_EQ(send_short(48, 1), STRATA_OK);
    CHECK_EQ(send_short(48, 2), STRATA_ERR_AGAIN); /* the put is under way */
    settle();
    CHECK_EQ(send_short(48, 2), STRATA_OK);
    settle();
    CHECK_EQ(try_send(48, 4, true), STRATA_OK);
    CHECK_EQ(send_short(48, 5), STRATA_ERR_AGAIN); /* it would overtake */
    CHECK_EQ(st_landing_flush(&p.out), STRATA_OK);
    settle();
    for (uint32_t number = 1; number < 5; number += number == 2 ? 2 : 1)
        CHECK_EQ(take_short(48, number), STRATA_OK);
    settle();
    CHECK_EQ(send_short(49, 5), STRATA_ERR_AGAIN); /* one line is left before the end */
    CHECK_EQ(send_short(48, 5), STRATA_OK);
    settle();
    CHECK_EQ(take_short(48, 5), STRATA_OK);
    settle();
    p.refuse = 100;
    CHECK_EQ(send_short(48, 7), STRATA_ERR_AGAIN); /* and nothing is taken */
    CHECK(!p.out.starved);
    p.refuse = 0;
    CHECK_EQ(send_short(48, 7), STRATA_OK);
    settle();
    CHECK_EQ(take_short(48, 7), STRATA_OK);
    settle();
    CHECK_EQ(st_landing_end(&p.out), STRATA_OK);
    CHECK_EQ(send_short(1, 8), STRATA_ERR_AGAIN);
    settle();
    end();
}
END_TEST

/* A slot by a message goes beside puts that are under way, over the ring's end, and to a reader that waits. */
START_TEST(by_messages)
{
    static char bytes[1000];
    begin(1024, 1);
    CHECK_EQ(send_short(500, 1), STRATA_OK);     /* a put of 9 lines of 16 */
    CHECK_EQ(send_by(300, 2), STRATA_OK);        /* 5 lines beside it */
    CHECK_EQ(send_by(100, 4), STRATA_OK);        /* the last two */
    CHECK_EQ(send_by(100, 5), STRATA_ERR_AGAIN); /* no room is left */
    settle();
    CHECK_EQ(take_short(500, 1), STRATA_OK);
    CHECK_EQ(take_short(300, 2), STRATA_OK);
    CHECK_EQ(take_short(100, 4), STRATA_OK);
    settle();
    CHECK_EQ(send_by(48, 5), STRATA_OK);
    settle();
    CHECK_EQ(take_short(48, 5), STRATA_OK);
    CHECK_EQ(send_by(600, 7), STRATA_OK);
    p.to = bytes;
    p.to_size = 599; /* too little room: it goes to the ring */
    settle();
    CHECK(p.to && !p.to_taken);
    CHECK_EQ(take_short(600, 7), STRATA_OK);
    settle();
    CHECK_EQ(send_by(600, 8), STRATA_OK); /* it wraps */
    settle();
    p.to = NULL;
    CHECK_EQ(take_short(600, 8), STRATA_OK);
    settle();
    p.to = bytes;
    p.to_size = 600;
    CHECK_EQ(send_by(600, 10), STRATA_OK);
    settle();
    CHECK(p.to_taken && p.to_len == 600);
    CHECK_EQ(pattern_check(bytes, 600, 10), -1);
    CHECK_EQ(p.in.released, p.in.read);
    CHECK_EQ(st_landing_end(&p.out), STRATA_OK);
    settle();
    CHECK(!p.in.ready && p.in.ended);
    CHECK_EQ(send_by(1, 11), STRATA_ERR_AGAIN);
    end();
}
END_TEST

/* When a message is not taken so: it is marked, one is held, none comes any more, the ring is broken. */
START_TEST(not_taken)
{
    struct st_landing_view v;
    uint32_t got;
    char bytes[200] = {0};
    begin(1024, 1);
    CHECK_EQ(st_landing_take(&p.in, bytes, 100, &got), STRATA_ERR_AGAIN);
    CHECK_EQ(try_send(100, 0, false), STRATA_OK);
    CHECK_EQ(try_send(100, 1, false), STRATA_OK);
    settle();
    CHECK_EQ(st_landing_take(&p.in, bytes, 100, &got), STRATA_ERR_UNSUPPORTED); /* it is marked */
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    CHECK_EQ(st_landing_take(&p.in, bytes, 100, &got), STRATA_ERR_UNSUPPORTED); /* that one is held */
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
    bytes[40] = 77;
    CHECK_EQ(st_landing_take(&p.in, bytes, 40, &got), STRATA_OK); /* cut short */
    CHECK_EQ(got, 100);
    CHECK_EQ(pattern_check(bytes, 40, 1), -1);
    CHECK_EQ(bytes[40], 77);
    CHECK_EQ(st_landing_end(&p.out), STRATA_OK);
    settle();
    CHECK_EQ(st_landing_take(&p.in, bytes, 100, &got), STRATA_ERR_UNSUPPORTED);
    CHECK_EQ(st_landing_peek(&p.in, &v), ST_LANDING_ENDED);
    CHECK(st_landing_in_finished(&p.in));
    end();
    begin(1024, 1);
    st_landing_in_fail(&p.in, STRATA_ERR_PEER);
    CHECK_EQ(st_landing_take(&p.in, bytes, 100, &got), STRATA_ERR_UNSUPPORTED);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("landing-short");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, mixed_at_random, 0, sizeof sizes / sizeof sizes[0]);
    tcase_add_test(tc, not_at_once);
    tcase_add_test(tc, by_messages);
    tcase_add_test(tc, not_taken);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
