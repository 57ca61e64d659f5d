/* Sets of channels (strata/channel.h) over every transport that strata-info finds and the ways of btl_shuffle: one look
 * for many, turns, long messages beside others, limits, ends that close; memory of a peer's channels. */
#include <strata/channel.h>
#include "support/suite.h"
#include "support/over_transports.h"

enum { MANY = 64, RING = 4096, LONG = 100000, PER_PEER = 24384 };

static size_t length_of(uint32_t channel, uint32_t number)
{
    struct rnd rnd = {(uint64_t)channel << 32 | number};
    return rnd_below(&rnd, 20) == 0 ? rnd_below(&rnd, LONG) : rnd_below(&rnd, 200);
}
static void name_of(uint32_t channel, char *name)
{
    snprintf(name, 16, "%u", channel);
}

static void any_out(struct tw_rank *r, uint32_t n)
{
    static __thread strata_channel_sender_t *c[MANY];
    uint32_t next[MANY] = {0};
    char name[16], *data = malloc(LONG);
    struct rnd rnd = {7};
    CHECK(data);
    for (uint32_t i = 0; i < MANY; i++) {
        name_of(i, name);
        CHECK_OK(strata_channel_open_send(r->s, 1, name, &c[i]));
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = rnd_below(&rnd, MANY);
        size_t len = length_of(k, next[k]);
        pattern_fill(data, len, (uint64_t)k << 32 | next[k]);
        CHECK_OK(strata_channel_send(c[k], data, len, STRATA_CHANNEL_FOREVER));
        next[k]++;
    }
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_OK(strata_channel_end(c[i], STRATA_CHANNEL_FOREVER));
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_OK(strata_channel_close_send(c[i]));
    free(data);
}
/* Takes what is there of an end: 1 message, or false when it is to be closed. */
static bool take(strata_channel_receiver_t *c, uint32_t channel, uint32_t *next)
{
    strata_channel_view_t v;
    size_t len = length_of(channel, *next);
    int rc = strata_channel_peek(c, 0, &v);
    if (rc == STRATA_ERR_AGAIN) /* a long one has begun to move */
        return true;
    if (rc == STRATA_CHANNEL_ENDED)
        return false;
    CHECK_OK(rc);
    CHECK_EQ(v.first_len + v.second_len, len);
    CHECK_EQ(pattern_check_at(v.first, 0, v.first_len, (uint64_t)channel << 32 | *next), -1);
    CHECK_EQ(pattern_check_at(v.second, v.first_len, v.second_len, (uint64_t)channel << 32 | *next), -1);
    ++*next;
    CHECK_OK(strata_channel_release(c, &v));
    return true;
}
static void any_in(struct tw_rank *r, uint32_t n)
{
    static __thread strata_channel_receiver_t *c[MANY];
    strata_channel_receiver_t *got;
    strata_channel_set_t *set;
    uint32_t next[MANY] = {0}, sum = 0;
    char name[16];
    int rc;
    CHECK_OK(strata_channel_set_create(r->s, &set));
    for (uint32_t i = 0; i < MANY; i++) {
        name_of(i, name);
        CHECK_OK(strata_channel_open_recv(r->s, 0, name, RING, &c[i]));
        CHECK_OK(strata_channel_set_add(set, c[i]));
    }
    while ((rc = strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &got)) == STRATA_OK) {
        uint32_t k = 0;
        while (k < MANY && c[k] != got)
            k++;
        CHECK(k < MANY);
        if (!take(got, k, &next[k])) {
            c[k] = NULL;
            CHECK_OK(strata_channel_close_recv(got));
        }
    }
    CHECK_EQ(rc, STRATA_CHANNEL_ENDED);
    for (uint32_t i = 0; i < MANY; i++)
        sum += next[i];
    CHECK_EQ(sum, n);
    CHECK_OK(strata_channel_set_destroy(set));
}
static void from_any(struct tw_rank *r)
{
    uint32_t n = (uint32_t)suite_scale(1500);
    (r->rank == 0 ? any_out : any_in)(r, n);
}

/* Ends that have something take turns, and one whose long message moves waits; then the limits. */
static void turns(struct tw_rank *r)
{
    enum { A, B, L, ENDS };
    static const char *const names[ENDS] = {"a", "b", "long"};
    char byte = 0;
    if (r->rank == 0) {
        strata_channel_sender_t *c[ENDS];
        strata_channel_view_t v;
        for (int i = 0; i < ENDS; i++)
            CHECK_OK(strata_channel_open_send(r->s, 1, names[i], &c[i]));
        CHECK_OK(strata_channel_reserve(c[L], LONG, STRATA_CHANNEL_FOREVER, &v));
        pattern_fill(v.first, LONG, 1);
        CHECK_OK(strata_channel_commit(c[L], LONG));
        for (int i = 0; i < 10; i++)
            for (int k = A; k <= B; k++)
                CHECK_OK(strata_channel_send(c[k], &byte, 1, STRATA_CHANNEL_FOREVER));
        for (int k = A; k <= B; k++)
            CHECK_OK(strata_channel_flush(c[k]));
        suite_signal(r->comm, 1, 3);
        suite_await(r->comm, 1, 4);
        for (int i = 0; i < ENDS; i++)
            (void)strata_channel_close_send(c[i]); /* the receiver may have closed */
        return;
    }
    strata_channel_receiver_t *c[ENDS], *got, *last = NULL;
    strata_channel_set_t *set, *other;
    strata_channel_view_t v;
    CHECK_OK(strata_channel_set_create(r->s, &set));
    CHECK_OK(strata_channel_set_create(r->s, &other));
    CHECK_RC(strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &got), STRATA_CHANNEL_ENDED);
    for (int i = 0; i < ENDS; i++) {
        CHECK_OK(strata_channel_open_recv(r->s, 0, names[i], RING, &c[i]));
        CHECK_OK(strata_channel_set_add(set, c[i]));
        CHECK_RC(strata_channel_set_add(other, c[i]), STRATA_ERR_STATE);
    }
    CHECK_RC(strata_channel_set_destroy(set), STRATA_ERR_STATE);
    CHECK_RC(strata_channel_set_remove(other, c[0]), STRATA_ERR_ARG);
    suite_await(r->comm, 0, 3);
    for (int n[ENDS] = {0}; n[A] < 10 || n[B] < 10 || n[L] < 1;) {
        CHECK_OK(strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &got));
        int k = got == c[A] ? A : got == c[B] ? B : L;
        int rc = strata_channel_peek(got, 0, &v);
        CHECK(rc == STRATA_OK || (k == L && rc == STRATA_ERR_AGAIN));
        if (rc != STRATA_OK)
            continue;
        n[k]++;
        if (k == L)
            CHECK_EQ(pattern_check(v.first, LONG, 1), -1);
        else if (n[A] > 1 && n[B] > 1 && n[A] < 10 && n[B] < 10) /* both have something: neither comes twice */
            CHECK(got != last);
        last = k == L ? NULL : got;
        CHECK_OK(strata_channel_release(got, &v));
    }
    CHECK_RC(strata_channel_set_next(set, 0, &got), STRATA_ERR_AGAIN);
    CHECK_RC(strata_channel_set_next(set, 5, &got), STRATA_ERR_TIMEOUT);
    suite_signal(r->comm, 0, 4);
    CHECK_OK(strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &got)); /* an end of stream */
    CHECK_RC(strata_channel_peek(got, 0, &v), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_set_remove(set, c[A]));
    for (int i = 0; i < ENDS; i++)
        CHECK_OK(strata_channel_close_recv(c[i]));
    CHECK_OK(strata_channel_set_destroy(set));
    CHECK_OK(strata_channel_set_destroy(other));
}

static void add_channels(void *arg, const strata_mem_line_t *line)
{
    if (strcmp(line->component, "channel") == 0)
        *(uint64_t *)arg += line->bytes;
}
static uint64_t memory(struct tw_rank *r)
{
    uint64_t bytes = 0;
    CHECK_OK(strata_mem_report(r->s, add_channels, &bytes));
    return bytes;
}
/* A peer costs nothing beside the rings before it has channels, and 24 kB at most with 64, long messages aside. */
static void memory_of_a_peer(struct tw_rank *r)
{
    strata_channel_sender_t *out[MANY];
    strata_channel_receiver_t *in[MANY];
    strata_channel_view_t v;
    uint64_t before = memory(r), most;
    char name[16];
    CHECK_EQ(before, 0);
    suite_signal(r->comm, 1 - r->rank, 3); /* the other has looked, too */
    suite_await(r->comm, 1 - r->rank, 3);
    for (uint32_t i = 0; i < MANY; i++) {
        name_of(i, name);
        if (r->rank == 0)
            CHECK_OK(strata_channel_open_send(r->s, 1, name, &out[i]));
        else
            CHECK_OK(strata_channel_open_recv(r->s, 0, name, 256, &in[i]));
    }
    for (uint32_t i = 0; i < MANY; i++)
        if (r->rank == 0)
            CHECK_OK(strata_channel_send(out[i], &i, sizeof i, STRATA_CHANNEL_FOREVER));
        else
            CHECK_OK(strata_channel_peek(in[i], STRATA_CHANNEL_FOREVER, &v));
    most = memory(r);
    CHECK_MSG(most > before && most <= PER_PEER, "%llu bytes for 64 channels", (unsigned long long)most);
    suite_signal(r->comm, 1 - r->rank, 3);
    suite_await(r->comm, 1 - r->rank, 3);
    if (r->rank == 1)
        for (uint32_t i = 0; i < MANY; i++)
            CHECK_OK(strata_channel_close_recv(in[i]));
    else
        for (uint32_t i = 0; i < MANY; i++)
            CHECK_RC(strata_channel_close_send(out[i]), STRATA_ERR_PEER);
    suite_signal(r->comm, 1 - r->rank, 3);
    suite_await(r->comm, 1 - r->rank, 3);
    if (r->rank == 0) {
        CHECK_MSG(memory(r) < PER_PEER / 8, "%llu bytes for no channel", (unsigned long long)memory(r));
    }
}

static const struct over_case cases[] = {
    {"from_any", from_any, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"turns", turns, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"memory_of_a_peer", memory_of_a_peer, 2, STRATA_THREAD_SINGLE, 0},
};

OVER_SUITE(channel_set, OVER_PUTS, cases, "btl=sm,self mca_base_spin=10 mca_base_yield=1",
           "btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50", "btl=shuffle,self btl_shuffle_get=0");
