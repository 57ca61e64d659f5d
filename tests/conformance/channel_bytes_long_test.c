/* A channel's stream of 10^8 bytes, each checked, over every transport that strata-info finds and the ways of
 * btl_shuffle: messages of 0 to 400,000 bytes, as many between 1 and 2 as between 100,000 and 200,000, written in place
 * or sent, taken where they are or received, so that each way of a message has many of each length. */
#include <strata/channel.h>
#include "support/form.h"
#include "support/over_transports.h"
#include "support/suite.h"

enum { FULL = 100000000, SHORT = 5000000, LONGEST = 400000, BITS = 19 };

static size_t bytes(void)
{
    return (size_t)suite_scale((int)test_form(SHORT, FULL));
}

static size_t length_of(struct rnd *rnd)
{
    uint32_t bits = rnd_below(rnd, BITS + 1), length = bits ? (1u << (bits - 1)) + rnd_below(rnd, 1u << (bits - 1)) : 0;
    return length < LONGEST ? length : LONGEST;
}

/* In runs of some tens either way, as programs do: whoever waits for a message of the same kind as the last one. */
static void send_one(strata_channel_sender_t *c, char *data, size_t length, uint32_t number)
{
    strata_channel_view_t v;
    if (number % 128 < 96) {
        pattern_fill(data, length, number);
        CHECK_OK(strata_channel_send(c, data, length, STRATA_CHANNEL_FOREVER));
        return;
    }
    CHECK_OK(strata_channel_reserve(c, length, STRATA_CHANNEL_FOREVER, &v));
    pattern_fill_at(v.first, 0, v.first_len, number);
    pattern_fill_at(v.second, v.first_len, v.second_len, number);
    CHECK_OK(strata_channel_commit(c, length));
}
static void recv_one(strata_channel_receiver_t *c, char *data, size_t length, uint32_t number)
{
    strata_channel_view_t v;
    size_t got;
    if (number % 160 < 128) {
        pattern_guard_set(data + LONGEST);
        CHECK_OK(strata_channel_recv(c, data, LONGEST, &got, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(got, length);
        CHECK_EQ(pattern_check(data, length, number), -1);
        CHECK(pattern_guard_ok(data + LONGEST));
        return;
    }
    CHECK_OK(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v));
    CHECK_EQ(v.first_len + v.second_len, length);
    CHECK_EQ(pattern_check_at(v.first, 0, v.first_len, number), -1);
    CHECK_EQ(pattern_check_at(v.second, v.first_len, v.second_len, number), -1);
    CHECK_OK(strata_channel_release(c, &v));
}

static void all_bytes(struct tw_rank *r)
{
    char *data = malloc(LONGEST + 1000);
    strata_channel_sender_t *out = NULL;
    strata_channel_receiver_t *in = NULL;
    struct rnd rnd = {11};
    CHECK(data);
    if (r->rank == 0)
        CHECK_OK(strata_channel_open_send(r->s, 1, "bytes", &out));
    else
        CHECK_OK(strata_channel_open_recv(r->s, 0, "bytes", 0, &in));
    uint32_t number = 0;
    for (size_t gone = 0, all = bytes(); gone < all; number++) {
        size_t length = length_of(&rnd);
        if (r->rank == 0)
            send_one(out, data, length, number);
        else
            recv_one(in, data, length, number);
        gone += length;
    }
    if (r->rank == 0) {
        CHECK_OK(strata_channel_close_send(out));
    } else {
        CHECK_RC(strata_channel_recv(in, data, 1, NULL, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
        CHECK_OK(strata_channel_close_recv(in));
    }
    free(data);
}

static const struct over_case cases[] = {{"all_bytes", all_bytes, 2, STRATA_THREAD_SINGLE, false}};

int main(void)
{
    static const char *const more[] = {"btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50",
                                       "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100", NULL};
    test_form_print(11, bytes(), FULL, "bytes over each transport");
    return over_main("conformance-channel-bytes-long", OVER_PUTS, cases, sizeof cases / sizeof cases[0], more);
}
