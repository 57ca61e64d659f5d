/* A peer that breaks the protocol of channels: descriptors of long messages that cannot be true, and made-up messages
 * about channels. What it says breaks its own channels, never the process. */
#include <check.h>
#include <strata/channel.h>
#include <strata/sdk/pml.h>
#include "channel/direct.h"
#include "channel/long.h"
#include "framework/base/landing_slot.h"
#include "support/random.h"
#include "support/run_suite.h"
#include "support/suite.h"

enum { RING = 4096, LONG = 100000 };

static const char *const settings[] = {"btl=sm,self", "btl=shuffle,self btl_shuffle_get=0"};

struct forged {
    struct channel_long d;
    uint32_t length; /* of the slot */
    int rc;          /* of peek */
};
static const struct forged forged[] = {
    {{.length = LONG, .part = 1000}, sizeof(struct channel_long) - 1, STRATA_ERR_PROTOCOL},
    {{.length = LONG, .part = 1000}, 0, STRATA_ERR_PROTOCOL},
    {{.length = 100, .part = 1000}, sizeof(struct channel_straight), STRATA_ERR_PROTOCOL}, /* nobody waits for it */
    {{.length = LONG, .part = 1000}, RING / 2, STRATA_ERR_PROTOCOL},
    {{.length = LONG, .part = 0}, sizeof(struct channel_long), STRATA_ERR_PROTOCOL},
    {{.length = LONG, .part = 1000, .has_key = 2}, sizeof(struct channel_long), STRATA_ERR_PROTOCOL},
    {{.length = UINT64_MAX, .part = 1000}, sizeof(struct channel_long), STRATA_ERR_PROTOCOL},
    {{.length = SIZE_MAX / 4, .part = 1000}, sizeof(struct channel_long), STRATA_ERR_NOMEM},
};

static void descriptor(struct tw_rank *r)
{
    const struct forged *f = r->arg;
    strata_channel_view_t v;
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        char bytes[RING / 2] = {0};
        CHECK_OK(strata_channel_open_send(r->s, 1, "x", &c));
        CHECK_OK(strata_channel_reserve(c, sizeof bytes, STRATA_CHANNEL_FOREVER, &v));
        CHECK(c->mapped.ring != NULL && v.second_len == 0);
        memcpy(v.first, bytes, sizeof bytes);
        memcpy(v.first, &f->d, sizeof f->d);
        mapped_commit(&c->mapped, f->length, MAPPED_MARKED);
        CHECK_OK(strata_channel_flush(c));
        tw_quiesce(r);
        CHECK_RC(strata_channel_close_send(c), STRATA_ERR_PEER);
    } else {
        strata_channel_receiver_t *c;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "x", RING, &c));
        CHECK_RC(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v), f->rc);
        CHECK_RC(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v), f->rc);
        CHECK_OK(strata_channel_close_recv(c));
        tw_quiesce(r);
    }
    tw_quiesce(r);
}
START_TEST(forged_descriptors)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[0], .quiet = true}, descriptor,
           (void *)(uintptr_t)&forged[_i]);
}
END_TEST

/* A number that is often in range, and often just outside. */
static uint64_t nasty(struct rnd *rnd, uint64_t range)
{
    uint32_t kind = rnd_below(rnd, 8);
    return kind == 0   ? UINT64_MAX - rnd_below(rnd, 3)
           : kind == 1 ? range + rnd_below(rnd, 2)
                       : rnd_below(rnd, (uint32_t)range);
}
static void make_up(struct rnd *rnd, struct st_btl_endpoint *ep)
{
    struct channel_head head = {.kind = (uint32_t)nasty(rnd, CHANNEL_WANT + 1),
                                .ring = (uint32_t)nasty(rnd, 4),
                                .id = (uint32_t)nasty(rnd, 6),
                                .offset = nasty(rnd, LONG),
                                .length = nasty(rnd, LONG)};
    struct channel_card card = {.card = {.base = 64, .size = RING, .name = (uint32_t)nasty(rnd, 4)},
                                .path = (uint32_t)nasty(rnd, 2),
                                .mappable = (uint32_t)nasty(rnd, 2),
                                .name = "y"};
    uint32_t len = head.kind == CHANNEL_CARD ? sizeof card : head.kind == CHANNEL_PART ? rnd_below(rnd, 500) : 0;
    if (head.kind == CHANNEL_WANT)
        len = sizeof(struct channel_want);
    uint32_t hdr_len = rnd_below(rnd, 10) ? sizeof head : rnd_below(rnd, sizeof head);
    if ((head.kind == CHANNEL_BYE || head.kind == CHANNEL_STOP) && rnd_below(rnd, 200))
        return; /* they end a channel */
    if (head.kind == CHANNEL_BYE && head.ring == 0)
        return; /* rank 0 sends by that ring, which its peer would give back: by a put it would harm itself */
    if (rnd_below(rnd, 20) == 0) {
        struct channel_bytes bytes = {.notice = (uint32_t)nasty(rnd, 4) << 17 | (uint32_t)nasty(rnd, RING)};
        (void)ep->btl->ops->send(ep, ST_AM_STREAM, &bytes, sizeof bytes, &card, rnd_below(rnd, sizeof card));
        return;
    }
    if (rnd_below(rnd, 20) == 0) {
        struct landing_slot made = {.len = rnd_below(rnd, 3) ? rnd_below(rnd, sizeof card) : (uint32_t)nasty(rnd, RING),
                                    .number = (uint32_t)nasty(rnd, 2),
                                    .flags = (uint32_t)nasty(rnd, 2)};
        struct channel_slot slot = {.notice = (uint32_t)nasty(rnd, 4) << 17 | (uint32_t)nasty(rnd, RING)};
        memcpy(slot.slot, &made, sizeof made);
        (void)ep->btl->ops->send(ep, ST_AM_STREAM, &slot, sizeof slot, &card,
                                 made.len < sizeof card ? made.len : rnd_below(rnd, sizeof card));
        return;
    }
    if (rnd_below(rnd, 10) == 0)
        len = rnd_below(rnd, sizeof card);
    (void)ep->btl->ops->send(ep, ST_AM_STREAM, &head, hdr_len, &card, len < sizeof card ? len : sizeof card);
}

/* Rank 0 makes messages up while rank 1 sends to it and takes from it; nothing of what is made up need be refused,
 * each of rank 1's calls comes back, and the log stays short. */
static void messages(struct tw_rank *r)
{
    enum { N = 20000 };
    struct rnd rnd = {1};
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    strata_channel_view_t v;
    struct st_peer *peer;
    CHECK_OK(strata_channel_open_recv(r->s, 1 - r->rank, "x", RING, &in));
    CHECK_OK(strata_channel_open_send(r->s, 1 - r->rank, "x", &out));
    (void)strata_channel_reserve(out, LONG, STRATA_CHANNEL_FOREVER, &v);
    (void)strata_channel_commit(out, LONG);
    tw_quiesce(r);
    for (int i = 0; i < N; i++) {
        if (r->rank == 0) {
            st_worker_lock(r->comm->worker);
            CHECK_OK(st_worker_peer(r->comm->worker, 1, &peer));
            make_up(&rnd, st_peer_way(peer, 0));
            st_worker_unlock(r->comm->worker);
            strata_progress(r->s);
            continue;
        }
        char byte;
        size_t len;
        (void)strata_channel_send(out, &byte, 1, 0);
        if (i % 64 == 0)
            (void)strata_channel_recv(in, &byte, 1, &len, 0);
        if (i % 256 == 0 && strata_channel_reserve(out, LONG, 0, &v) == STRATA_OK)
            (void)strata_channel_commit(out, LONG);
    }
    tw_quiesce(r);
    CHECK_OK(strata_channel_close_recv(in));
    int rc = strata_channel_close_send(out);
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER || rc == STRATA_ERR_PROTOCOL);
    tw_quiesce(r);
    CHECK(tw_log_count(r->world, ST_LOG_WARN) < 100);
}
START_TEST(made_up_messages)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i], .quiet = true}, messages, NULL);
}
END_TEST

/* A sender that writes whatever it likes into a mapped ring: the receiver gets messages of the ring's memory, or an
 * error that stays. */
static void forged_ring(struct tw_rank *r)
{
    struct rnd rnd = {1 + *(const uint32_t *)r->arg};
    strata_channel_view_t v;
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        CHECK_OK(strata_channel_open_send(r->s, 1, "x", &c));
        CHECK_OK(strata_channel_send(c, &rnd, 1, STRATA_CHANNEL_FOREVER));
        CHECK(c->mapped.ring != NULL);
        tw_quiesce(r);
        for (int i = 0; i < 100; i++) {
            uint32_t at = rnd_below(&rnd, c->mapped.capacity / MAPPED_UNIT) * MAPPED_UNIT;
            uint64_t word = (uint64_t)nasty(&rnd, 4) << 32 | (uint32_t)nasty(&rnd, c->mapped.capacity);
            atomic_store(mapped_header(c->mapped.ring, i % 2 ? at : c->mapped.at), word);
            CHECK(strata_channel_send(c, &word, sizeof word, 0) != STRATA_ERR_ARG);
        }
        tw_quiesce(r);
        (void)strata_channel_close_send(c);
    } else {
        strata_channel_receiver_t *c;
        int rc, n = 0;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "x", RING, &c));
        CHECK_OK(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v));
        CHECK_OK(strata_channel_release(c, &v));
        tw_quiesce(r);
        while ((rc = strata_channel_peek(c, 20, &v)) == STRATA_OK && n++ < 10000) {
            CHECK(v.first_len + v.second_len <= RING && (char *)v.first >= c->mapped.ring &&
                  (char *)v.first + v.first_len <= c->mapped.ring + c->mapped.capacity);
            CHECK_OK(strata_channel_release(c, &v));
        }
        CHECK(rc == STRATA_ERR_TIMEOUT || rc == STRATA_ERR_PROTOCOL || rc == STRATA_CHANNEL_ENDED ||
              rc == STRATA_ERR_NOMEM);
        CHECK(rc == STRATA_ERR_TIMEOUT || strata_channel_peek(c, 0, &v) == rc);
        CHECK_OK(strata_channel_close_recv(c));
        tw_quiesce(r);
    }
    tw_quiesce(r);
}
START_TEST(forged_mapped_ring)
{
    uint32_t seed = (uint32_t)_i;
    tw_run(&(struct tw_options){.n = 2, .settings = settings[0], .quiet = true}, forged_ring, &seed);
}
END_TEST

/* A receiver that says it has released what was not sent. */
static void forged_head(struct tw_rank *r)
{
    if (r->rank == 0) {
        strata_channel_sender_t *c;
        char bytes[RING / 2] = {0};
        int rc = STRATA_OK;
        CHECK_OK(strata_channel_open_send(r->s, 1, "x", &c));
        CHECK_OK(strata_channel_send(c, bytes, 1, STRATA_CHANNEL_FOREVER));
        tw_quiesce(r);
        for (int i = 0; i < 8 && rc == STRATA_OK; i++)
            rc = strata_channel_send(c, bytes, sizeof bytes, 0);
        CHECK_RC(rc, STRATA_ERR_PROTOCOL);
        CHECK_RC(strata_channel_send(c, bytes, 1, 0), STRATA_ERR_PROTOCOL);
        tw_quiesce(r);
        CHECK_RC(strata_channel_close_send(c), STRATA_ERR_PROTOCOL);
    } else {
        strata_channel_receiver_t *c;
        strata_channel_view_t v;
        CHECK_OK(strata_channel_open_recv(r->s, 0, "x", RING, &c));
        CHECK_OK(strata_channel_peek(c, STRATA_CHANNEL_FOREVER, &v));
        atomic_store(&c->mapped.words->head, 3 * RING);
        tw_quiesce(r);
        tw_quiesce(r);
        CHECK_OK(strata_channel_close_recv(c));
    }
    tw_quiesce(r);
}
START_TEST(forged_mapped_head)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[0], .quiet = true}, forged_head, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel-fuzz");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, forged_descriptors, 0, sizeof forged / sizeof forged[0]);
    tcase_add_loop_test(tc, forged_mapped_ring, 0, 20);
    tcase_add_test(tc, forged_mapped_head);
    tcase_add_loop_test(tc, made_up_messages, 0, sizeof settings / sizeof settings[0]);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
