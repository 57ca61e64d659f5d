/* Mapped rings, both ends in one process: releases in any order, room that a sender asks for. */
/* one thread */
#include <check.h>
#include <string.h>

#include "channel/mapped_in.h"
#include "channel/mapped_out.h"
#include "support/pattern.h"
#include "support/random.h"
#include "support/run_suite.h"

enum { SIZE = 1024, HELD = 6 };

static _Alignas(64) char memory[SIZE + MAPPED_MORE];
static struct mapped_out out;
static struct mapped_in in;

static void setup(void)
{
    const struct st_shared_mapping mapping = {.memory = memory};

    memset(memory, 0, sizeof(memory));
    mapped_in_open(&in, memory, SIZE);
    mapped_out_open(&out, &mapping, SIZE);
    ck_assert(mapped_in_used(&in));
}

static bool try_send(uint32_t len, uint64_t number)
{
    struct st_landing_view v;
    char bytes[SIZE];

    ck_assert(mapped_look(&out));
    if (!mapped_room(&out, len))
        return false;
    pattern_fill(bytes, len, number);
    mapped_reserve(&out, len, &v);
    st_landing_fill(&v, bytes);
    mapped_commit(&out, len, 0);
    (void)mapped_publish(&out);
    return true;
}

static void check(const struct st_landing_view *v, uint32_t len, uint64_t number)
{
    char bytes[SIZE];

    ck_assert_uint_eq(st_landing_length(v), len);
    st_landing_copy(v, bytes);
    ck_assert_int_eq(pattern_check(bytes, len, number), -1);
}

/* Held messages stay as they were sent, whatever was released before; each is given back once. */
START_TEST(release_in_any_order)
{
    struct st_landing_view v[HELD];
    uint32_t len[20000], number[HELD], n = sizeof(len) / sizeof(len[0]), sent = 0, got = 0, held = 0;
    struct rnd rnd = {(uint64_t)_i + 1};

    for (uint32_t i = 0; i < n; i++)
        len[i] = rnd_below(&rnd, 4) ? rnd_below(&rnd, 40) : rnd_below(&rnd, SIZE / HELD);
    while (got < n || held) {
        if (sent < n && rnd_below(&rnd, 2) && try_send(len[sent], sent))
            sent++;
        if (held < HELD && rnd_below(&rnd, 2) && mapped_in_peek(&in, &v[held]) == 0) {
            check(&v[held], len[got], got);
            number[held++] = got++;
        }
        if (held == 0 || rnd_below(&rnd, 3))
            continue;
        uint32_t k = rnd_below(&rnd, held);
        struct st_landing_view gone = v[k];
        check(&gone, len[number[k]], number[k]);
        ck_assert(mapped_release(&in, gone.end, st_landing_length(&gone)));
        ck_assert(!mapped_release(&in, gone.end, st_landing_length(&gone)));
        (void)mapped_return(&in);
        v[k] = v[--held];
        number[k] = number[held];
        ck_assert_uint_eq(in.held, held);
    }
    ck_assert_uint_eq(in.released, in.read);
    ck_assert_uint_eq(in.early, 0);
}
END_TEST

/* Behind the end of the stream, too. */
START_TEST(release_backwards)
{
    struct st_landing_view v[HELD], none;

    for (uint32_t i = 0; i < HELD; i++) {
        ck_assert(try_send(10, i));
        ck_assert_int_eq(mapped_in_peek(&in, &v[i]), 0);
    }
    mapped_commit(&out, 0, MAPPED_END);
    (void)mapped_publish(&out);
    ck_assert_int_eq(mapped_in_peek(&in, &none), ST_LANDING_ENDED);
    for (uint32_t i = HELD; i-- > 0;) {
        check(&v[i], 10, i);
        ck_assert(mapped_release(&in, v[i].end, 10));
    }
    ck_assert_uint_eq(in.released, in.read);
}
END_TEST

START_TEST(release_of_what_is_not_held)
{
    struct st_landing_view v[3];

    ck_assert(!mapped_release(&in, 16, 0));
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert(try_send(10 * i, i));
        ck_assert_int_eq(mapped_in_peek(&in, &v[i]), 0);
    }
    ck_assert(!mapped_release(&in, v[2].end + 16, 0)); /* behind what was read */
    ck_assert(!mapped_release(&in, v[0].end, 100));    /* before what is held */
    ck_assert(!mapped_release(&in, v[0].end, UINT32_MAX));
    ck_assert(!mapped_release(&in, v[0].end, SIZE_MAX));
    ck_assert_uint_eq(in.held, 3);
    ck_assert_uint_eq(in.released, 0);
}
END_TEST

/* A sender that waits for something else than room, a long message, does not ask; later it does. */
START_TEST(room_is_asked_for)
{
    struct st_landing_view v;
    uint32_t n = 0;

    ck_assert(try_send(64, 0));
    mapped_out_ask(&out, 64);
    ck_assert_uint_eq(atomic_load(&out.words->want), 0);
    while (try_send(64, n + 1))
        n++;
    mapped_out_ask(&out, 64);
    ck_assert_uint_ne(atomic_load(&out.words->want), 0);
    bool told = false;
    for (uint32_t i = 0; i <= n; i++) {
        ck_assert_int_eq(mapped_in_peek(&in, &v), 0);
        ck_assert(mapped_release(&in, v.end, 64));
        told = mapped_return(&in) || told;
    }
    ck_assert(told);
    ck_assert(try_send(64, 0));
}
END_TEST

/* The receiver holds most of the ring and waits: the sender gets the little that was released. */
START_TEST(rest_of_the_room)
{
    struct st_landing_view first, v;

    for (uint32_t n = 0; try_send(64, n); n++)
        ;
    mapped_out_ask(&out, 64);
    ck_assert_int_eq(mapped_in_peek(&in, &first), 0);
    while (mapped_in_peek(&in, &v) == 0)
        ;
    ck_assert(mapped_release(&in, first.end, 64));
    ck_assert(!mapped_return(&in));
    ck_assert(!try_send(64, 0));
    ck_assert(mapped_return_rest(&in));
    ck_assert(!mapped_return_rest(&in));
    ck_assert(try_send(64, 0));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_mapped");
    TCase *tc = tcase_create("mapped");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, release_in_any_order, 0, 8);
    tcase_add_test(tc, release_backwards);
    tcase_add_test(tc, release_of_what_is_not_held);
    tcase_add_test(tc, room_is_asked_for);
    tcase_add_test(tc, rest_of_the_room);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
