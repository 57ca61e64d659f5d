/* Channels (strata/channel.h) over every transport that strata-info finds and the ways of btl_shuffle: either end
 * first, random sizes, both ways of moving messages, packing, messages longer than the ring, limits, ends that go away,
 * 1,000 of them, several ranks, threads. */
/* starts first */
#include <pthread.h>
#include <strata/channel.h>
#include <strata/sdk/pml.h>
#include "support/suite.h"
#include "support/over_transports.h"

enum { RING = 16384, LONGEST = RING - STRATA_CHANNEL_HEAD, LONG = 300000 };

static size_t length_of(uint64_t seed)
{
    struct rnd rnd = {seed};
    uint32_t kind = rnd_below(&rnd, 8);
    if (seed % 17 == 3)
        return LONGEST + rnd_below(&rnd, LONG - LONGEST);
    return kind == 0 ? rnd_below(&rnd, LONGEST + 1) : kind < 3 ? rnd_below(&rnd, 3000) : rnd_below(&rnd, 100);
}
static uint64_t seed_of(int from, uint32_t channel, uint32_t number)
{
    return (uint64_t)(from + 1) << 50 ^ (uint64_t)channel << 32 ^ number;
}

/* In place, or from a buffer, in turn. */
static int send_one(strata_channel_sender_t *c, uint64_t seed, int64_t limit)
{
    size_t len = length_of(seed);
    strata_channel_view_t v;
    if (seed % 2) {
        char *data = malloc(len + 1);
        CHECK(data);
        pattern_fill_at(data, 0, len, seed);
        int rc = strata_channel_send(c, data, len, limit);
        free(data);
        return rc;
    }
    int rc = strata_channel_reserve(c, len, limit, &v);
    if (rc != STRATA_OK)
        return rc;
    CHECK_EQ(v.first_len + v.second_len, len);
    pattern_fill_at(v.first, 0, v.first_len, seed);
    pattern_fill_at(v.second, v.first_len, v.second_len, seed);
    return strata_channel_commit(c, len);
}
static int recv_one(strata_channel_receiver_t *c, uint64_t seed, int64_t limit)
{
    strata_channel_view_t v;
    if (seed / 2 % 2) {
        char *data = malloc(LONG);
        CHECK(data);
        size_t len;
        int rc = strata_channel_recv(c, data, LONG, &len, limit);
        if (rc == STRATA_OK) {
            CHECK_EQ(len, length_of(seed));
            CHECK_EQ(pattern_check_at(data, 0, len, seed), -1);
        }
        free(data);
        return rc;
    }
    int rc = strata_channel_peek(c, limit, &v);
    if (rc != STRATA_OK)
        return rc;
    CHECK_EQ(v.first_len + v.second_len, length_of(seed));
    CHECK_EQ(pattern_check_at(v.first, 0, v.first_len, seed), -1);
    CHECK_EQ(pattern_check_at(v.second, v.first_len, v.second_len, seed), -1);
    return strata_channel_release(c, &v);
}
static void expect_end(strata_channel_receiver_t *c)
{
    strata_channel_view_t v;
    CHECK_EQ(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
}

/* A stream of random sizes; `late`: the rank that opens after the other. */
static void stream(struct tw_rank *r, int late)
{
    uint32_t n = (uint32_t)suite_scale(1500);
    if (r->rank == late)
        suite_await(r->comm, 1 - late, 1);
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        CHECK_OK(strata_channel_open_send(r->s, 1, "stream", &c));
        if (late == 1)
            suite_signal(r->comm, 1, 1);
        for (uint32_t i = 0; i < n; i++)
            CHECK_OK(send_one(c, seed_of(0, 0, i), STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_close_send(c));
    } else {
        strata_channel_receiver_t *c;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "stream", RING, &c));
        if (late == 0)
            suite_signal(r->comm, 0, 1);
        for (uint32_t i = 0; i < n; i++)
            CHECK_OK(recv_one(c, seed_of(0, 0, i), STRATA_CHANNEL_FOREVER));
        expect_end(c);
    }
}
static void receiver_first(struct tw_rank *r)
{
    stream(r, 0);
}
static void sender_first(struct tw_rank *r)
{
    stream(r, 1);
}

/* Short messages, none of which is flushed by hand, arrive while the sender waits for something else. */
static void packed(struct tw_rank *r)
{
    uint32_t n = (uint32_t)suite_scale(20000), got;
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        CHECK_OK(strata_channel_open_send(r->s, 1, "packed", &c));
        for (uint32_t i = 0; i < n; i++)
            CHECK_OK(strata_channel_send(c, &i, sizeof i, STRATA_CHANNEL_FOREVER));
        suite_await(r->comm, 1, 2);
        CHECK_OK(strata_channel_flush(c));
        CHECK_OK(strata_channel_close_send(c));
    } else {
        strata_channel_receiver_t *c;
        size_t len;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "packed", 0, &c));
        for (uint32_t i = 0; i < n; i++) {
            CHECK_OK(strata_channel_recv(c, &got, sizeof got, &len, STRATA_CHANNEL_FOREVER));
            CHECK_EQ(len, sizeof got);
            CHECK_EQ(got, i);
        }
        suite_signal(r->comm, 0, 2);
        expect_end(c);
    }
}

/* Nothing waits that is told not to, and limits end. */
static void limits(struct tw_rank *r)
{
    static const char zeros[LONGEST];
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        strata_channel_view_t v;
        int n = 0, rc;
        CHECK_RC(strata_channel_open_send(r->s, 2, "x", &c), STRATA_ERR_RANK);
        CHECK_RC(strata_channel_open_send(r->s, 1, "", &c), STRATA_ERR_ARG);
        CHECK_RC(strata_channel_open_send(r->s, 1, "a name of more than 31 characters", &c), STRATA_ERR_ARG);
        CHECK_OK(strata_channel_open_send(r->s, 1, "limits", &c));
        CHECK_RC(strata_channel_send(c, zeros, 1, 0), STRATA_ERR_AGAIN); /* no receiver yet */
        CHECK_RC(strata_channel_send(c, zeros, 1, 5), STRATA_ERR_TIMEOUT);
        suite_signal(r->comm, 1, 3);
        CHECK_OK(strata_channel_send(c, zeros, 100, STRATA_CHANNEL_FOREVER));
        CHECK_RC(strata_channel_commit(c, 0), STRATA_ERR_ARG); /* nothing is reserved */
        CHECK_RC(strata_channel_commit(c, 100), STRATA_ERR_ARG);
        CHECK_OK(strata_channel_reserve(c, 100, STRATA_CHANNEL_FOREVER, &v));
        CHECK_RC(strata_channel_commit(c, 101), STRATA_ERR_ARG);
        suite_await(r->comm, 1, 4);
        while ((rc = strata_channel_send(c, zeros, 1000, 5)) == STRATA_OK)
            n++;
        CHECK_RC(rc, STRATA_ERR_TIMEOUT);
        /* What the receiver has not consumed fills the ring; the sender that waits may have asked in the last slot. */
        CHECK(n == RING / 1024 || n == RING / 1024 - 1);
        CHECK_OK(strata_send(r->comm, &n, sizeof n, 1, 5));
        CHECK_OK(strata_channel_close_send(c));
    } else {
        strata_channel_receiver_t *c;
        strata_channel_view_t v;
        char buf[1000];
        size_t len;
        int n = 0, sent, rc;
        suite_await(r->comm, 0, 3);
        CHECK_RC(strata_channel_open_recv(r->s, 0, "limits", 1000, &c), STRATA_ERR_ARG);
        CHECK_OK(strata_channel_open_recv(r->s, 0, "limits", RING, &c));
        CHECK_RC(strata_channel_recv(c, buf, 50, &len, STRATA_CHANNEL_FOREVER), STRATA_ERR_TRUNCATE);
        CHECK_EQ(len, 100);
        CHECK_RC(strata_channel_peek(c, 0, &v), STRATA_ERR_AGAIN);
        CHECK_RC(strata_channel_peek(c, 5, &v), STRATA_ERR_TIMEOUT);
        suite_signal(r->comm, 0, 4);
        CHECK_OK(strata_recv(r->comm, &sent, sizeof sent, 0, 5, NULL));
        while ((rc = strata_channel_recv(c, buf, sizeof buf, &len, STRATA_CHANNEL_FOREVER)) == STRATA_OK)
            n++;
        CHECK_EQ(rc, STRATA_CHANNEL_ENDED);
        CHECK_EQ(n, sent);
        CHECK_OK(strata_channel_close_recv(c));
    }
}

/* Messages longer than the ring: between short ones, held, cut short at both ends, two at once and no third. */
static void long_out(struct tw_rank *r, char *data)
{
    strata_channel_sender_t *c;
    strata_channel_view_t v;
    uint32_t i = 0;
    CHECK_OK(strata_channel_open_send(r->s, 1, "long", &c));
    for (; i < 6; i++) { /* lengths around the longest that the ring takes, and short ones between */
        pattern_fill(data, LONGEST - 1 + i, i);
        CHECK_OK(strata_channel_send(c, data, LONGEST - 1 + i, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_send(c, &i, sizeof i, STRATA_CHANNEL_FOREVER));
    }
    suite_await(r->comm, 1, 5);
    for (i = 0; i < 2; i++) {
        CHECK_OK(strata_channel_reserve(c, LONG, STRATA_CHANNEL_FOREVER, &v));
        CHECK_EQ(v.first_len, LONG);
        pattern_fill(v.first, LONG - i, 10 + i);
        CHECK_OK(strata_channel_commit(c, LONG - i));
    }
    CHECK_RC(strata_channel_send(c, data, LONG, 0), STRATA_ERR_AGAIN); /* nobody has taken the two */
    CHECK_RC(strata_channel_send(c, data, LONG, 5), STRATA_ERR_TIMEOUT);
    CHECK_OK(strata_channel_send(c, &i, sizeof i, STRATA_CHANNEL_FOREVER)); /* a short one goes all the same */
    suite_signal(r->comm, 1, 6);
    for (i = 0; i < 3; i++) {
        CHECK_OK(strata_channel_reserve(c, LONG, STRATA_CHANNEL_FOREVER, &v));
        CHECK_OK(strata_channel_reserve(c, 10, STRATA_CHANNEL_FOREVER, &v)); /* takes the other's place */
        CHECK_OK(strata_channel_reserve(c, LONG, STRATA_CHANNEL_FOREVER, &v));
        pattern_fill(v.first, LONG, 20 + i);
        CHECK_OK(strata_channel_commit(c, i == 2 ? 0 : LONG));
    }
    CHECK_RC(strata_channel_reserve(c, SIZE_MAX / 4, STRATA_CHANNEL_FOREVER, &v), STRATA_ERR_NOMEM);
    CHECK_OK(strata_channel_close_send(c));
}
static void long_in(struct tw_rank *r, char *data)
{
    strata_channel_receiver_t *c;
    strata_channel_view_t v[4];
    uint32_t got;
    size_t len;
    CHECK_OK(strata_channel_open_recv(r->s, 0, "long", RING, &c));
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_OK(strata_channel_recv(c, data, LONG, &len, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(len, LONGEST - 1 + i);
        CHECK_EQ(pattern_check(data, len, i), -1);
        CHECK_OK(strata_channel_recv(c, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(got, i);
    }
    suite_signal(r->comm, 0, 5);
    suite_await(r->comm, 0, 6);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OK(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v[i]));
    CHECK_RC(strata_channel_recv(c, data, LONG, &len, 0), STRATA_ERR_STATE); /* three are held */
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(v[i].first_len, LONG - i);
        CHECK_EQ(pattern_check(v[i].first, LONG - i, 10 + i), -1);
    }
    CHECK_EQ(v[2].first_len, sizeof got);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_OK(strata_channel_release(c, &v[i]));
    while (strata_channel_peek(c, 0, &v[0]) == STRATA_ERR_AGAIN) /* a transfer that is looked at goes on */
        ;
    CHECK_EQ(pattern_check(v[0].first, LONG, 20), -1);
    CHECK_OK(strata_channel_release(c, &v[0]));
    pattern_guard_set(data + 100000);
    CHECK_RC(strata_channel_recv(c, data, 100000, &len, STRATA_CHANNEL_FOREVER), STRATA_ERR_TRUNCATE);
    CHECK_EQ(len, LONG);
    CHECK_EQ(pattern_check(data, 100000, 21), -1);
    CHECK(pattern_guard_ok(data + 100000));
    CHECK_OK(strata_channel_recv(c, NULL, 0, &len, STRATA_CHANNEL_FOREVER));
    CHECK_EQ(len, 0);
    expect_end(c);
}
static void long_messages(struct tw_rank *r)
{
    char *data = malloc(LONG);
    CHECK(data);
    (r->rank == 0 ? long_out : long_in)(r, data);
    free(data);
}

/* The receiver closes with a long message that it has only begun to take; another channel goes on. */
static void long_left(struct tw_rank *r)
{
    enum { HUGE_LONG = 8 << 20 };
    strata_channel_view_t v;
    char byte = 1;
    int rc;
    if (r->rank == 0) {
        strata_channel_sender_t *a, *b;
        CHECK_OK(strata_channel_open_send(r->s, 1, "a", &a));
        CHECK_OK(strata_channel_open_send(r->s, 1, "b", &b));
        CHECK_OK(strata_channel_reserve(a, HUGE_LONG, STRATA_CHANNEL_FOREVER, &v));
        CHECK_OK(strata_channel_commit(a, HUGE_LONG));
        suite_signal(r->comm, 1, 7);
        while ((rc = strata_channel_send(a, &byte, 1, STRATA_CHANNEL_FOREVER)) == STRATA_OK)
            ;
        CHECK_RC(rc, STRATA_ERR_PEER);
        CHECK_RC(strata_channel_close_send(a), STRATA_ERR_PEER);
        CHECK_OK(strata_channel_send(b, &byte, 1, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_close_send(b));
    } else {
        strata_channel_receiver_t *a, *b;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "a", RING, &a));
        CHECK_OK(strata_channel_open_recv(r->s, 0, "b", RING, &b));
        suite_await(r->comm, 0, 7);
        rc = strata_channel_peek(a, 1, &v);
        CHECK(rc == STRATA_ERR_TIMEOUT || rc == STRATA_OK);
        CHECK_OK(strata_channel_close_recv(a));
        CHECK_OK(strata_channel_recv(b, &byte, 1, NULL, STRATA_CHANNEL_FOREVER));
        expect_end(b);
    }
}

/* The receiver closes early: its channel ends, another of the same pair and one of the same name go on. */
static void receiver_leaves(struct tw_rank *r)
{
    char byte = 1;
    if (r->rank == 0) {
        strata_channel_sender_t *a, *b;
        int rc;
        CHECK_OK(strata_channel_open_send(r->s, 1, "a", &a));
        CHECK_OK(strata_channel_open_send(r->s, 1, "b", &b));
        while ((rc = strata_channel_send(a, &byte, 1, STRATA_CHANNEL_FOREVER)) == STRATA_OK)
            ;
        CHECK_RC(rc, STRATA_ERR_PEER);
        CHECK_RC(strata_channel_close_send(a), STRATA_ERR_PEER);
        CHECK_OK(strata_channel_open_send(r->s, 1, "a", &a));
        CHECK_OK(strata_channel_send(a, &byte, 1, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_send(b, &byte, 1, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_close_send(a));
        CHECK_OK(strata_channel_close_send(b));
    } else {
        strata_channel_receiver_t *a, *b;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "a", RING, &a));
        CHECK_OK(strata_channel_open_recv(r->s, 0, "b", RING, &b));
        CHECK_OK(strata_channel_recv(a, &byte, 1, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_close_recv(a));
        CHECK_OK(strata_channel_open_recv(r->s, 0, "a", RING, &a));
        CHECK_OK(strata_channel_recv(a, &byte, 1, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_recv(b, &byte, 1, NULL, STRATA_CHANNEL_FOREVER));
        expect_end(a);
        expect_end(b);
    }
}

/* The other rank is given up: both ends say so and can be closed. */
static void peer_fails(struct tw_rank *r)
{
    static const char zeros[1000];
    char buf[1000];
    strata_channel_sender_t *out = NULL, *none = NULL;
    strata_channel_receiver_t *in = NULL;
    int rc;
    if (r->rank == 0) {
        CHECK_OK(strata_channel_open_send(r->s, 1, "x", &out));
        CHECK_OK(strata_channel_open_send(r->s, 1, "nobody's", &none));
        CHECK_OK(strata_channel_send(out, zeros, 10, STRATA_CHANNEL_FOREVER));
    } else {
        CHECK_OK(strata_channel_open_recv(r->s, 0, "x", RING, &in));
        CHECK_OK(strata_channel_recv(in, buf, sizeof buf, NULL, STRATA_CHANNEL_FOREVER));
    }
    tw_quiesce(r);
    CHECK_OK(strata_host_peer_failed(r->s, 1 - r->rank, "the test says so"));
    if (r->rank == 0) {
        while ((rc = strata_channel_send(out, zeros, 1000, STRATA_CHANNEL_FOREVER)) == STRATA_OK)
            ;
        CHECK_RC(rc, STRATA_ERR_PEER);
        CHECK_RC(strata_channel_send(none, zeros, 1, STRATA_CHANNEL_FOREVER), STRATA_ERR_PEER);
        CHECK_RC(strata_channel_close_send(none), STRATA_ERR_PEER);
        CHECK_RC(strata_channel_close_send(out), STRATA_ERR_PEER);
        CHECK_RC(strata_channel_open_send(r->s, 1, "x", &out), STRATA_ERR_PEER);
        tw_quiesce(r);
    } else {
        while ((rc = strata_channel_recv(in, buf, sizeof buf, NULL, STRATA_CHANNEL_FOREVER)) == STRATA_OK)
            ;
        CHECK_RC(rc, STRATA_ERR_PEER);
        tw_quiesce(r); /* the sender lives and has to stop before the ring's memory goes */
        CHECK_OK(strata_channel_close_recv(in));
    }
    tw_quiesce(r);
}

/* Both ends in one thread. */
static void to_itself(struct tw_rank *r)
{
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    CHECK_OK(strata_channel_open_send(r->s, r->rank, "me", &out));
    CHECK_OK(strata_channel_open_recv(r->s, r->rank, "me", RING, &in));
    for (uint32_t i = 0; i < 300; i++) {
        CHECK_OK(send_one(out, seed_of(r->rank, 1, i), STRATA_CHANNEL_FOREVER));
        CHECK_OK(recv_one(in, seed_of(r->rank, 1, i), STRATA_CHANNEL_FOREVER));
    }
    CHECK_OK(send_one(out, seed_of(r->rank, 1, 300), STRATA_CHANNEL_FOREVER));
    CHECK_RC(strata_channel_finish(out, 0), STRATA_ERR_AGAIN);
    CHECK_RC(strata_channel_finish(out, 1), STRATA_ERR_TIMEOUT);
    CHECK_OK(recv_one(in, seed_of(r->rank, 1, 300), STRATA_CHANNEL_FOREVER));
    expect_end(in);
    CHECK_OK(strata_channel_finish(out, STRATA_CHANNEL_FOREVER));
    CHECK_RC(strata_channel_finish(NULL, 0), STRATA_ERR_ARG);
    CHECK_OK(strata_channel_close_send(out));
}

/* 1,000 channels at once, each used. */
static void many(struct tw_rank *r)
{
    enum { MANY = 1000, SMALL = 1024 };
    static strata_channel_sender_t *out[MANY];
    static strata_channel_receiver_t *in[MANY];
    char name[16];
    uint32_t got, n = (uint32_t)suite_scale(MANY);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%u", i);
        if (r->rank == 0)
            CHECK_OK(strata_channel_open_send(r->s, 1, name, &out[i]));
        else
            CHECK_OK(strata_channel_open_recv(r->s, 0, name, SMALL, &in[i]));
    }
    for (uint32_t i = 0; i < n; i++)
        if (r->rank == 0) {
            CHECK_OK(strata_channel_send(out[i], &i, sizeof i, STRATA_CHANNEL_FOREVER));
        } else {
            CHECK_OK(strata_channel_recv(in[i], &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
            CHECK_EQ(got, i);
        }
    for (uint32_t i = 0; i < n; i++)
        if (r->rank == 0)
            CHECK_OK(strata_channel_close_send(out[i]));
        else
            expect_end(in[i]);
}

/* ---- more than two ranks ---- */

/* What a rank has with one of the others. */
struct pair {
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    uint32_t sent, got; /* messages */
    bool ended, closed;
};
/* As many messages as go now. Whether anything is left to do. */
static bool everybody_go_on(struct pair *p, int me, int other, uint32_t n)
{
    int rc = STRATA_OK;
    while (p->sent < n && (rc = send_one(p->out, seed_of(me, (uint32_t)other, p->sent), 0)) == STRATA_OK)
        p->sent++;
    if (p->sent == n && !p->ended)
        p->ended = (rc = strata_channel_end(p->out, 0)) == STRATA_OK;
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
    for (rc = STRATA_OK; !p->closed && rc == STRATA_OK;) {
        rc = recv_one(p->in, seed_of(other, (uint32_t)me, p->got), 0);
        p->closed = rc == STRATA_CHANNEL_ENDED;
        p->got += rc == STRATA_OK;
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN || p->closed);
    }
    return !p->ended || !p->closed;
}
/* Each rank sends to each other one, short messages and long ones, while it receives from all. */
static void everybody(struct tw_rank *r)
{
    struct pair pairs[OVER_MOST] = {0};
    int size = strata_size(r->s), left;
    uint32_t n = (uint32_t)suite_scale(60);
    for (int i = 0; i < size; i++) {
        if (i == r->rank)
            continue;
        CHECK_OK(strata_channel_open_recv(r->s, i, "everybody", RING, &pairs[i].in));
        CHECK_OK(strata_channel_open_send(r->s, i, "everybody", &pairs[i].out));
    }
    do {
        left = 0;
        for (int i = 0; i < size; i++)
            left += i != r->rank && everybody_go_on(&pairs[i], r->rank, i, n);
    } while (left);
    for (int i = 0; i < size; i++) {
        if (i == r->rank)
            continue;
        CHECK_EQ(pairs[i].got, n);
        CHECK_OK(strata_channel_close_send(pairs[i].out));
        CHECK_OK(strata_channel_close_recv(pairs[i].in));
    }
}

/* ---- threads ---- */

struct job {
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    uint32_t channel, n;
    int from;
};
static void *thread_main(void *arg)
{
    struct job *j = arg;
    for (uint32_t i = 0; i < j->n; i++)
        if (j->out)
            CHECK_OK(send_one(j->out, seed_of(j->from, j->channel, i), STRATA_CHANNEL_FOREVER));
        else
            CHECK_OK(recv_one(j->in, seed_of(j->from, j->channel, i), STRATA_CHANNEL_FOREVER));
    if (j->out)
        CHECK_OK(strata_channel_close_send(j->out));
    else
        expect_end(j->in);
    return NULL;
}
/* A thread for each end: of channels of one direction, or one of each direction. */
static void each_a_thread(struct tw_rank *r, uint32_t channels, bool both)
{
    struct job job[6] = {0};
    pthread_t id[6];
    uint32_t n = 0;
    for (int from = 0; from <= both; from++)
        for (uint32_t i = 0; i < channels; i++, n++) {
            char name[16];
            snprintf(name, sizeof name, "thread %u", i);
            job[n] = (struct job){.channel = i, .n = (uint32_t)suite_scale(400), .from = from};
            if (r->rank == from)
                CHECK_OK(strata_channel_open_send(r->s, 1 - from, name, &job[n].out));
            else
                CHECK_OK(strata_channel_open_recv(r->s, from, name, RING, &job[n].in));
            CHECK_EQ(pthread_create(&id[n], NULL, thread_main, &job[n]), 0);
        }
    for (uint32_t i = 0; i < n; i++)
        CHECK_EQ(pthread_join(id[i], NULL), 0);
}
static void threads(struct tw_rank *r)
{
    each_a_thread(r, 3, false);
}
static void threads_both_ways(struct tw_rank *r)
{
    each_a_thread(r, 1, true);
}

static const struct over_case cases[] = {
    {"receiver_first", receiver_first, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"sender_first", sender_first, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"packed", packed, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"limits", limits, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"long_messages", long_messages, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"long_left", long_left, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"receiver_leaves", receiver_leaves, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"peer_fails", peer_fails, 2, STRATA_THREAD_SINGLE, OVER_QUIET},
    {"to_itself", to_itself, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"many", many, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"everybody", everybody, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
    {"threads", threads, 2, STRATA_THREAD_MULTIPLE, OVER_PROCESSES},
    {"threads_both_ways", threads_both_ways, 2, STRATA_THREAD_MULTIPLE, OVER_PROCESSES},
};

OVER_SUITE(channel, OVER_PUTS | OVER_TURNS, cases, "btl=sm,self mca_base_spin=10 mca_base_yield=1",
           "btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50",
           "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100",
           "btl=shuffle,self btl_shuffle_get=0",
           "btl=shuffle,self btl_shuffle_unsupported_percent=30 btl_shuffle_unsupported_put=0");
