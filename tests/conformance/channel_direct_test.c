/* Messages of channels that go straight from the sender's memory to that of a receiver that waits. Each is made to go
 * that way: the choice is set, and the sender waits for the receiver as long as it takes. */
#include <check.h>
#include <strata/channel.h>
#include "channel/direct.h"
#include "channel/long.h"
#include "support/run_suite.h"
#include "support/suite.h"

enum { RING = 65536, LONG = 300000, LEAST = 16384, N = 200 };

static const struct way {
    const char *settings;
    bool can;  /* go straight */
    bool cuts; /* what is longer than the buffer, too */
    bool all;  /* all do; else the transport may refuse, and some go by copies */
} ways[] = {{"btl=sm,self", true, true, true},
            {"btl=sm,self btl_sm_single_copy=off", false, true, true},
            {"btl=tcp,self", true, false, true},
            {"btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50", true, false, false},
            {"btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100", true, false, false}};

/* patience: femtoseconds for a byte. */
static void only_direct(strata_channel_sender_t *c, uint64_t patience)
{
    CHECK(c->direct);
    for (unsigned i = 0; i < CHANNEL_CLASSES; i++)
        c->direct->choices.of[i] = (struct channel_choice){.fs = {patience, 1}, .way = CHANNEL_DIRECT, .term = true};
}

/* Of any length, with short ones between; every third one is longer than the buffer, where such go straight. */
static void out(struct tw_rank *r, char *data)
{
    const struct way *way = r->arg;
    strata_channel_sender_t *c;
    struct rnd rnd = {7};
    CHECK_OK(strata_channel_open_send(r->s, 1, "x", &c));
    CHECK_OK(strata_channel_send(c, data, 1, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_send(c, data, LEAST, STRATA_CHANNEL_FOREVER));
    if (way->can)
        only_direct(c, 0);
    CHECK_OK(strata_channel_send(c, data, LEAST, STRATA_CHANNEL_FOREVER)); /* the receiver is told by this one */
    uint32_t gone = c->direct->n_gone;
    for (uint32_t i = 0; i < N; i++) {
        size_t len = LEAST + rnd_below(&rnd, LONG - LEAST);
        pattern_fill(data, len, i);
        suite_await(r->comm, 1, 1);
        if (way->can)
            only_direct(c, (uint64_t)1 << (way->all ? 40 : 24));
        CHECK_OK(strata_channel_send(c, data, len, STRATA_CHANNEL_FOREVER));
        memset(data, 0, len); /* it may be used again */
        CHECK_OK(strata_channel_send(c, &i, sizeof i, STRATA_CHANNEL_FOREVER));
        if (way->all)
            CHECK_EQ(c->direct->n_gone, way->can ? gone + i + 1 : 0);
    }
    CHECK(!way->can || c->direct->n_gone > gone);
    CHECK_OK(strata_channel_close_send(c));
}
static void in(struct tw_rank *r, char *data)
{
    const struct way *way = r->arg;
    strata_channel_receiver_t *c;
    struct rnd rnd = {7};
    uint32_t got;
    size_t len;
    CHECK_OK(strata_channel_open_recv(r->s, 0, "x", RING, &c));
    CHECK_OK(strata_channel_recv(c, data, LONG, &len, STRATA_CHANNEL_FOREVER));
    CHECK_EQ(len, 1);
    CHECK_OK(strata_channel_recv(c, data, LONG, &len, STRATA_CHANNEL_FOREVER));
    CHECK_EQ(len, LEAST);
    CHECK_OK(strata_channel_recv(c, data, LONG, &len, STRATA_CHANNEL_FOREVER));
    CHECK_EQ(len, LEAST);
    for (uint32_t i = 0; i < N; i++) {
        size_t expect = LEAST + rnd_below(&rnd, LONG - LEAST), size = i % 3 == 0 && way->cuts ? LEAST : LONG;
        suite_signal(r->comm, 0, 1);
        pattern_guard_set(data + size);
        CHECK_RC(strata_channel_recv(c, data, size, &len, STRATA_CHANNEL_FOREVER),
                 expect > size ? STRATA_ERR_TRUNCATE : STRATA_OK);
        CHECK_EQ(len, expect);
        CHECK_EQ(pattern_check(data, len < size ? len : size, i), -1);
        CHECK(pattern_guard_ok(data + size));
        CHECK_OK(strata_channel_recv(c, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(got, i);
    }
    CHECK_RC(strata_channel_recv(c, data, LONG, &len, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
}
static void body(struct tw_rank *r)
{
    char *data = malloc(LONG + 1000);
    CHECK(data);
    (r->rank == 0 ? out : in)(r, data);
    free(data);
}
START_TEST(straight)
{
    tw_run(&(struct tw_options){.n = 2, .settings = ways[_i].settings}, body, (void *)(uintptr_t)&ways[_i]);
}
END_TEST

/* Messages by sends, where puts fill the ring: each asked for, or in a stream, in which short ones are packed all the
 * same; every eighth is long, and leaves from the user's memory. */
static void by_sends(struct tw_rank *r)
{
    enum { MANY = 3000, MOST = 40000 };
    static const struct channel_trial sends = {.round = CHANNEL_TRIAL_ROUNDS, .sends = true};
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    char *data = malloc(MOST);
    size_t len;
    CHECK(data);
    CHECK_OK(strata_channel_open_send(r->s, 1 - r->rank, "x", &out));
    CHECK_OK(strata_channel_open_recv(r->s, 1 - r->rank, "x", RING, &in));
    for (uint32_t i = 0; i < MANY; i++) {
        struct rnd rnd = {1 + i};
        size_t length = rnd_below(&rnd, i % 8 ? 3000 : MOST);
        if (r->rank == 0 || (i > 0 && i < MANY / 2)) {
            pattern_fill(data, length, i);
            CHECK_OK(strata_channel_send(out, data, length, STRATA_CHANNEL_FOREVER));
            for (unsigned k = 0; k < CHANNEL_TRIALS; k++)
                out->with->trials[k] = sends;
        }
        if (r->rank == 1 || (i > 0 && i < MANY / 2)) {
            CHECK_OK(strata_channel_recv(in, data, MOST, &len, STRATA_CHANNEL_FOREVER));
            CHECK_EQ(len, length);
            CHECK_EQ(pattern_check(data, length, i), -1);
        }
    }
    CHECK(r->rank == 1 || out->n_sends > 0); /* one that meets a put under way joins the next */
    CHECK_OK(strata_channel_end(out, STRATA_CHANNEL_FOREVER));
    CHECK_RC(strata_channel_recv(in, data, MOST, NULL, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_send(out));
    CHECK_OK(strata_channel_close_recv(in));
    free(data);
}
START_TEST(sends)
{
    tw_run(&(struct tw_options){.n = 2, .settings = ways[_i].settings}, by_sends, NULL);
}
END_TEST

/* Where puts go apart from messages, questions and answers go by sends, but for the first one. */
static void asked(struct tw_rank *r)
{
    enum { MANY = 300, MOST = 12000 };
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    char *data = malloc(MOST);
    size_t len;
    CHECK(data);
    CHECK_OK(strata_channel_open_recv(r->s, 1 - r->rank, "x", RING, &in));
    CHECK_OK(strata_channel_open_send(r->s, 1 - r->rank, "x", &out));
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        struct rnd rnd = {1 + i};
        size_t length = rnd_below(&rnd, i % 4 < 2 ? 300 : MOST);
        if (i % 2 == (uint32_t)r->rank) {
            pattern_fill(data, length, i);
            CHECK_OK(strata_channel_send(out, data, length, STRATA_CHANNEL_FOREVER));
            continue;
        }
        CHECK_OK(strata_channel_recv(in, data, MOST, &len, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(len, length);
        CHECK_EQ(pattern_check(data, length, i), -1);
    }
    /* Few, if any, meet a full socket and join a put. */
    CHECK_MSG(out->n_sends > MANY - 10, "%u of %d messages went by sends", out->n_sends, MANY);
    CHECK_OK(strata_channel_end(out, STRATA_CHANNEL_FOREVER));
    CHECK_RC(strata_channel_recv(in, data, MOST, NULL, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_send(out));
    CHECK_OK(strata_channel_close_recv(in));
    free(data);
}
START_TEST(answers_go_by_sends)
{
    tw_run(&(struct tw_options){.n = 2, .settings = "btl=tcp,self"}, asked, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel-direct");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, straight, 0, sizeof ways / sizeof ways[0]);
    tcase_add_test(tc, answers_go_by_sends);
    tcase_add_loop_test(tc, sends, 2, sizeof ways / sizeof ways[0]);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
