/* Channels whose receiver holds messages (strata/channel.h), over every transport that strata-info finds and the ways
 * of btl_shuffle: releases in any order, windows of held messages nearly as long as the ring; wake-ups of a sender. */
#include <time.h>
#include <strata/channel.h>
#include <strata/sdk/clock.h>
#include "framework/base/context.h"
#include "support/suite.h"
#include "support/over_transports.h"

enum { RING = 65536, SHORT = 1008, LONG = 100000, HELD = 8, LIMIT_MS = 20000 };

static size_t length_of(uint32_t number)
{
    struct rnd rnd = {number};
    return number % 11 == 5 ? RING + rnd_below(&rnd, LONG - RING) : rnd_below(&rnd, number % 3 ? 200 : 7000);
}

static void out(struct tw_rank *r, uint32_t n)
{
    strata_channel_sender_t *c;
    char *data = malloc(LONG);
    CHECK(data);
    CHECK_OK(strata_channel_open_send(r->s, 1, "any order", &c));
    for (uint32_t i = 0; i < n; i++) {
        pattern_fill(data, length_of(i), i);
        CHECK_OK(strata_channel_send(c, data, length_of(i), LIMIT_MS));
    }
    CHECK_OK(strata_channel_finish(c, LIMIT_MS));
    CHECK_OK(strata_channel_close_send(c));
    free(data);
}
static void check(const strata_channel_view_t *v, uint32_t number)
{
    CHECK_EQ(v->first_len + v->second_len, length_of(number));
    CHECK_EQ(pattern_check_at(v->first, 0, v->first_len, number), -1);
    CHECK_EQ(pattern_check_at(v->second, v->first_len, v->second_len, number), -1);
}

/* Takes up to HELD messages and releases any of them; what is held stays as it was sent. */
static void in(struct tw_rank *r, uint32_t n)
{
    strata_channel_receiver_t *c;
    strata_channel_view_t v[HELD], gone;
    uint32_t number[HELD], held = 0, next = 0;
    struct rnd rnd = {1};
    CHECK_OK(strata_channel_open_recv(r->s, 0, "any order", RING, &c));
    while (next < n || held) {
        uint32_t oldest = next;
        for (uint32_t i = 0; i < held; i++)
            oldest = number[i] < oldest ? number[i] : oldest;
        /* Messages behind the oldest need room, also those that were released. */
        if (next < n && next - oldest < HELD && (held == 0 || rnd_below(&rnd, 3))) {
            CHECK_OK(strata_channel_peek(c, LIMIT_MS, &v[held]));
            check(&v[held], next);
            number[held++] = next++;
            continue;
        }
        uint32_t k = rnd_below(&rnd, held);
        check(&v[k], number[k]);
        CHECK_OK(strata_channel_release(c, &v[k]));
        gone = v[k];
        v[k] = v[--held];
        number[k] = number[held];
        CHECK_RC(strata_channel_release(c, &gone), STRATA_ERR_ARG);
        for (k = 0; k < held; k++)
            check(&v[k], number[k]);
    }
    CHECK_RC(strata_channel_peek(c, LIMIT_MS, &gone), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
}
static void any_order(struct tw_rank *r)
{
    (r->rank == 0 ? out : in)(r, (uint32_t)suite_scale(800));
}

/* The last messages are released backwards, behind the end of the stream. */
static void backwards(struct tw_rank *r)
{
    char byte;
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        CHECK_OK(strata_channel_open_send(r->s, 1, "backwards", &c));
        for (byte = 0; byte < (char)HELD; byte++)
            CHECK_OK(strata_channel_send(c, &byte, 1, LIMIT_MS));
        CHECK_OK(strata_channel_finish(c, LIMIT_MS));
        CHECK_OK(strata_channel_close_send(c));
        return;
    }
    strata_channel_receiver_t *c;
    strata_channel_view_t v[HELD], none;
    CHECK_OK(strata_channel_open_recv(r->s, 0, "backwards", RING, &c));
    for (byte = 0; byte < (char)HELD; byte++)
        CHECK_OK(strata_channel_peek(c, LIMIT_MS, &v[(int)byte]));
    CHECK_RC(strata_channel_peek(c, LIMIT_MS, &none), STRATA_CHANNEL_ENDED);
    while (byte-- > 0) {
        CHECK_EQ(*(char *)v[(int)byte].first, byte);
        CHECK_OK(strata_channel_release(c, &v[(int)byte]));
    }
    CHECK_OK(strata_channel_close_recv(c));
}

/* A window of `window` messages is held, and each further one is awaited before the oldest is released. `set`: by a set
 * of ends. */
static void window_in(struct tw_rank *r, uint32_t window, uint32_t n, bool by_set)
{
    strata_channel_receiver_t *c, *got;
    strata_channel_set_t *set;
    strata_channel_view_t v[RING / 1024];
    CHECK_OK(strata_channel_open_recv(r->s, 0, "window", RING, &c));
    CHECK_OK(strata_channel_set_create(r->s, &set));
    if (by_set)
        CHECK_OK(strata_channel_set_add(set, c));
    for (uint32_t i = 0; i < n; i++) {
        strata_channel_view_t *at = &v[i % window];
        if (i >= window)
            CHECK_OK(strata_channel_release(c, at));
        if (by_set)
            CHECK_OK(strata_channel_set_next(set, LIMIT_MS, &got));
        CHECK_OK(strata_channel_peek(c, by_set ? 0 : LIMIT_MS, at));
        CHECK_EQ(at->first_len + at->second_len, SHORT);
        CHECK_EQ(pattern_check_at(at->first, 0, at->first_len, i), -1);
    }
    for (uint32_t i = n - window; i < n; i++)
        CHECK_OK(strata_channel_release(c, &v[i % window]));
    CHECK_RC(strata_channel_peek(c, LIMIT_MS, &v[0]), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
    CHECK_OK(strata_channel_set_destroy(set));
}
static void window(struct tw_rank *r, bool by_set)
{
    static const uint32_t windows[] = {47, 55, 62};
    uint32_t n = (uint32_t)suite_scale(600);
    if (n < 150) /* more than two windows */
        n = 150;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        if (r->rank == 1) {
            window_in(r, windows[i], n, by_set);
            continue;
        }
        strata_channel_sender_t *c;
        char data[SHORT];
        CHECK_OK(strata_channel_open_send(r->s, 1, "window", &c));
        for (uint32_t k = 0; k < n; k++) {
            pattern_fill(data, SHORT, k);
            CHECK_OK(strata_channel_send(c, data, SHORT, LIMIT_MS));
        }
        CHECK_OK(strata_channel_finish(c, LIMIT_MS));
        CHECK_OK(strata_channel_close_send(c));
    }
}
static void window_by_peek(struct tw_rank *r)
{
    window(r, false);
}
static void window_by_set(struct tw_rank *r)
{
    window(r, true);
}

/* Each sleep is ended by what it waits for: of a sender that waited for the memory of a third long message, and then
 * for room again and again. */
static void wake_ups_out(struct tw_rank *r)
{
    static const size_t longs[] = {RING - STRATA_CHANNEL_HEAD + 1, RING + 60, LONG, LONG, LONG};
    strata_channel_sender_t *c;
    char *data = calloc(1, LONG);
    CHECK(data);
    CHECK_OK(strata_channel_open_send(r->s, 1, "wake-ups", &c));
    for (size_t i = 0; i < sizeof longs / sizeof longs[0] + 400; i++) {
        bool is_long = i < sizeof longs / sizeof longs[0];
        int64_t begin = st_now_ms();
        CHECK_OK(strata_channel_send(c, data, is_long ? longs[i] : SHORT, STRATA_CHANNEL_FOREVER));
        CHECK_MSG(st_now_ms() - begin < 120000, "nothing has ended a sleep for room, message %zu", i);
    }
    CHECK_OK(strata_channel_close_send(c));
    free(data);
}
static void wake_ups_in(struct tw_rank *r)
{
    const struct timespec pause = {0, 2000000};
    strata_channel_receiver_t *c;
    char *data = malloc(LONG);
    int rc;
    CHECK(data);
    CHECK_OK(strata_channel_open_recv(r->s, 0, "wake-ups", RING, &c));
    do {
        (void)nanosleep(&pause, NULL);
        rc = strata_channel_recv(c, data, LONG, NULL, STRATA_CHANNEL_FOREVER);
    } while (rc == STRATA_OK);
    CHECK_RC(rc, STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
    free(data);
}
static void wake_ups(struct tw_rank *r)
{
    struct st_base_config *base = (struct st_base_config *)(uintptr_t)r->s->base;
    int64_t before = base->sleep_max_us;
    base->sleep_max_us = 240000000;
    (r->rank == 0 ? wake_ups_out : wake_ups_in)(r);
    base->sleep_max_us = before;
}

static const struct over_case cases[] = {
    {"any_order", any_order, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"backwards", backwards, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"window_by_peek", window_by_peek, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"window_by_set", window_by_set, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"wake_ups", wake_ups, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
};

OVER_SUITE(channel_hold, OVER_PUTS, cases, "btl=sm,self mca_base_spin=10 mca_base_yield=1",
           "btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50");
