/* Senders of channels that are given up (strata_channel_abort_send), over every transport that strata-info finds: the
 * sender does not wait, the receiver is told, memory that it may read stays, other channels go on. */
#include <strata/channel.h>
#include "support/suite.h"
#include "support/over_transports.h"

enum { RING = 4096, FEW = 10, LONG = 8 << 20, TAG = 1 };

static strata_channel_sender_t *open_out(struct tw_rank *r, const char *name)
{
    strata_channel_sender_t *c;
    CHECK_OK(strata_channel_open_send(r->s, 1, name, &c));
    return c;
}
static strata_channel_receiver_t *open_in(struct tw_rank *r, const char *name)
{
    strata_channel_receiver_t *c;
    CHECK_OK(strata_channel_open_recv(r->s, 0, name, RING, &c));
    return c;
}
static void send_few(strata_channel_sender_t *c)
{
    for (int i = 0; i < FEW; i++)
        CHECK_OK(strata_channel_send(c, &i, sizeof i, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_flush(c));
}
static void expect_few(strata_channel_receiver_t *c)
{
    for (int i = 0, got; i < FEW; i++) {
        CHECK_OK(strata_channel_recv(c, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(got, i);
    }
}
static void expect(strata_channel_receiver_t *c, int rc)
{
    strata_channel_view_t v;
    CHECK_RC(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v), rc);
    CHECK_RC(strata_channel_peek(c, 0, &v), rc);
    CHECK_OK(strata_channel_close_recv(c));
}
/* Messages sent before have arrived when this returns at both. */
static void meet(struct tw_rank *r)
{
    for (int i = 0; i < 10; i++) {
        suite_signal(r->comm, 1 - r->rank, TAG);
        suite_await(r->comm, 1 - r->rank, TAG);
    }
}
/* A whole stream. */
static void goes_on(struct tw_rank *r, const char *name)
{
    if (r->rank == 0) {
        strata_channel_sender_t *c = open_out(r, name);
        send_few(c);
        CHECK_OK(strata_channel_close_send(c));
    } else {
        strata_channel_receiver_t *c = open_in(r, name);
        expect_few(c);
        expect(c, STRATA_CHANNEL_ENDED);
    }
}

/* Messages that have arrived are taken after the sender is gone, which has not waited for that. */
static void arrived(struct tw_rank *r)
{
    if (r->rank == 0) {
        strata_channel_sender_t *c = open_out(r, "x");
        send_few(c);
        meet(r);
        CHECK_RC(strata_channel_abort_send(NULL), STRATA_ERR_ARG);
        CHECK_OK(strata_channel_abort_send(c));
        meet(r);
    } else {
        strata_channel_receiver_t *c = open_in(r, "x");
        meet(r);
        meet(r);
        expect_few(c);
        expect(c, STRATA_ERR_PEER);
    }
    goes_on(r, "x");
}

/* The ring is full, and the receiver holds everything. */
static void full(struct tw_rank *r)
{
    static const char zeros[500];
    if (r->rank == 0) {
        strata_channel_sender_t *c = open_out(r, "x");
        int rc, n = 0;
        while ((rc = strata_channel_send(c, zeros, sizeof zeros, 100)) == STRATA_OK)
            n++;
        CHECK_RC(rc, STRATA_ERR_TIMEOUT);
        CHECK_OK(strata_channel_abort_send(c));
        CHECK_OK(strata_send(r->comm, &n, sizeof n, 1, TAG + 1));
    } else {
        strata_channel_receiver_t *c = open_in(r, "x");
        strata_channel_view_t v[RING / 500];
        int sent, n = 0, rc;
        while ((rc = strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v[n])) == STRATA_OK)
            n++;
        CHECK_RC(rc, STRATA_ERR_PEER);
        CHECK_OK(strata_recv(r->comm, &sent, sizeof sent, 0, TAG + 1, NULL));
        CHECK_EQ(n, sent);
        CHECK_OK(strata_channel_close_recv(c));
    }
    goes_on(r, "x");
}

/* The receiver waits, alone or in a set, for a sender that has sent nothing. */
static void unused(struct tw_rank *r)
{
    if (r->rank == 0) {
        strata_channel_sender_t *a = open_out(r, "a"), *b = open_out(r, "b");
        meet(r);
        CHECK_OK(strata_channel_abort_send(a));
        meet(r);
        CHECK_OK(strata_channel_abort_send(b));
    } else {
        strata_channel_receiver_t *a = open_in(r, "a"), *b = open_in(r, "b"), *got;
        strata_channel_set_t *set;
        strata_channel_view_t v;
        meet(r);
        expect(a, STRATA_ERR_PEER);
        CHECK_OK(strata_channel_set_create(r->s, &set));
        CHECK_OK(strata_channel_set_add(set, b));
        meet(r);
        int rc;
        do {
            CHECK_OK(strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &got));
            rc = strata_channel_peek(got, 0, &v);
        } while (rc == STRATA_ERR_AGAIN);
        CHECK_RC(rc, STRATA_ERR_PEER);
        CHECK_OK(strata_channel_close_recv(b));
        CHECK_OK(strata_channel_set_destroy(set));
    }
    goes_on(r, "a");
}

/* The receiver opens when the sender is gone: it is told, and the next two of that name find each other. */
static void unopened(struct tw_rank *r)
{
    if (r->rank == 0) {
        CHECK_OK(strata_channel_abort_send(open_out(r, "x")));
        meet(r);
    } else {
        meet(r);
        expect(open_in(r, "x"), STRATA_ERR_PEER);
    }
    goes_on(r, "x");
    if (r->rank == 0)
        CHECK_OK(strata_channel_abort_send(open_out(r, "y"))); /* nobody ever opens it */
}

static void add_long(void *arg, const strata_mem_line_t *line)
{
    if (strcmp(line->component, "channel") == 0 && strcmp(line->category, "long messages") == 0)
        *(uint64_t *)arg += line->bytes;
}
static uint64_t long_bytes(struct tw_rank *r)
{
    uint64_t bytes = 0;
    CHECK_OK(strata_mem_report(r->s, add_long, &bytes));
    return bytes;
}
/* The receiver has begun with one of two long messages. It gets that one whole or not at all, though the sender has
 * more long messages, and never the other. The memory goes when it has closed. */
static void long_message(struct tw_rank *r)
{
    strata_channel_view_t v;
    if (r->rank == 0) {
        strata_channel_sender_t *c = open_out(r, "x"), *other;
        for (int i = 0; i < 2; i++) {
            CHECK_OK(strata_channel_reserve(c, LONG, STRATA_CHANNEL_FOREVER, &v));
            pattern_fill(v.first, LONG, (uint64_t)i);
            CHECK_OK(strata_channel_commit(c, LONG));
        }
        suite_signal(r->comm, 1, TAG);
        suite_await(r->comm, 1, TAG);
        CHECK_OK(strata_channel_abort_send(c));
        CHECK(long_bytes(r) >= LONG);
        other = open_out(r, "other");
        for (int i = 0; i < 2; i++) {
            CHECK_OK(strata_channel_reserve(other, LONG, STRATA_CHANNEL_FOREVER, &v));
            pattern_fill(v.first, LONG, 7);
            CHECK_OK(strata_channel_commit(other, LONG));
        }
        CHECK_OK(strata_channel_close_send(other));
        suite_await(r->comm, 1, TAG + 1);
        while (long_bytes(r) > 0)
            (void)strata_progress(r->s);
    } else {
        strata_channel_receiver_t *c = open_in(r, "x"), *other = open_in(r, "other");
        suite_await(r->comm, 0, TAG);
        int rc = strata_channel_peek(c, 0, &v);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
        suite_signal(r->comm, 0, TAG);
        if (rc != STRATA_OK)
            rc = strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v);
        if (rc == STRATA_OK)
            CHECK_EQ(pattern_check(v.first, LONG, 0), -1);
        else
            CHECK_RC(rc, STRATA_ERR_PEER);
        for (int i = 0; i < 2; i++) {
            strata_channel_view_t w;
            CHECK_OK(strata_channel_peek(other, STRATA_CHANNEL_FOREVER, &w));
            CHECK_EQ(pattern_check(w.first, LONG, 7), -1);
            CHECK_OK(strata_channel_release(other, &w));
        }
        expect(other, STRATA_CHANNEL_ENDED);
        expect(c, STRATA_ERR_PEER);
        suite_signal(r->comm, 0, TAG + 1);
    }
    goes_on(r, "x");
}

static const struct over_case cases[] = {
    {"arrived", arrived, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"full", full, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"unused", unused, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"unopened", unopened, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"long_message", long_message, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
};

OVER_SUITE(channel_abort, OVER_PUTS, cases, "btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50",
           "btl=shuffle,self btl_shuffle_get=0", "btl=sm,self btl_sm_single_copy=off");
