/* The policy of the polling set. */
#include <check.h>

#include <strata/sdk/polling_set.h>
#include "support/random.h"
#include "support/run_suite.h"

static const struct st_polling_set_config small = {.max_members = 2, .promote_after = 4, .window = 1000};

static struct st_polling_set *make(const struct st_polling_set_config *c, uint32_t n)
{
    struct st_polling_set *set = NULL;
    ck_assert_int_eq(st_polling_set_create(c, n, &set), STRATA_OK);
    return set;
}

/* n arrivals by the shared path; the verdict of the last. */
static enum st_polling_verdict arrive(struct st_polling_set *set, uint32_t peer, int n, uint32_t *slot)
{
    enum st_polling_verdict v = ST_POLL_STAY;
    for (int i = 0; i < n; i++)
        v = st_polling_set_shared_arrival(set, peer, slot);
    return v;
}

START_TEST(bad_config)
{
    struct st_polling_set *set = NULL;
    ck_assert_int_eq(st_polling_set_create(&(struct st_polling_set_config){1, 0, 1}, 2, &set), STRATA_ERR_ARG);
    ck_assert_int_eq(st_polling_set_create(&(struct st_polling_set_config){1, 1, 0}, 2, &set), STRATA_ERR_ARG);
    set = make(&(struct st_polling_set_config){0, 1, 10}, 2);
    uint32_t slot;
    ck_assert_int_eq(arrive(set, 0, 50, &slot), ST_POLL_STAY); /* no members allowed */
    ck_assert_int_eq(arrive(set, 7, 50, &slot), ST_POLL_STAY); /* no such peer */
    st_polling_set_destroy(set);
    st_polling_set_destroy(NULL);
}
END_TEST

START_TEST(an_unusable_slot_is_given_to_nobody)
{
    struct st_polling_set *set = make(&small, 100);
    uint32_t slot = 99;
    ck_assert_int_eq(arrive(set, 10, 4, &slot), ST_POLL_PROMOTE);
    ck_assert_uint_eq(slot, 0);
    st_polling_set_unusable(set, 0);
    ck_assert_int_eq(arrive(set, 10, 1, &slot), ST_POLL_PROMOTE); /* the same peer may have another one */
    ck_assert_uint_eq(slot, 1);
    st_polling_set_joined(set, 10, 1);
    for (int i = 0; arrive(set, 20, 1, &slot) != ST_POLL_EVICT; i++)
        ck_assert_int_lt(i, 100);
    ck_assert_uint_eq(slot, 1);
    st_polling_set_left(set, 1);
    ck_assert_int_eq(arrive(set, 20, 1, &slot), ST_POLL_PROMOTE);
    ck_assert_uint_eq(slot, 1);
    st_polling_set_destroy(set);
}
END_TEST

START_TEST(first_hot_peers_join)
{
    struct st_polling_set *set = make(&small, 100);
    uint32_t slot = 99, n;
    const uint32_t *order;
    ck_assert_int_eq(arrive(set, 10, 3, &slot), ST_POLL_STAY);
    ck_assert_int_eq(arrive(set, 10, 1, &slot), ST_POLL_PROMOTE);
    ck_assert_uint_eq(slot, 0);
    /* Until the hand-over is through nothing more is asked for the same peer. */
    ck_assert_int_eq(arrive(set, 10, 5, &slot), ST_POLL_STAY);
    st_polling_set_order(set, &order, &n);
    ck_assert_uint_eq(n, 0);
    st_polling_set_joined(set, 10, 0);
    ck_assert_int_eq(arrive(set, 20, 4, &slot), ST_POLL_PROMOTE);
    ck_assert_uint_eq(slot, 1);
    st_polling_set_joined(set, 20, 1);
    st_polling_set_order(set, &order, &n);
    ck_assert_uint_eq(n, 2);
    st_polling_set_destroy(set);
}
END_TEST

START_TEST(hotter_peer_replaces_coldest)
{
    struct st_polling_set *set = make(&small, 100);
    uint32_t slot;
    arrive(set, 1, 4, &slot);
    st_polling_set_joined(set, 1, 0);
    arrive(set, 2, 4, &slot);
    st_polling_set_joined(set, 2, 1);
    st_polling_set_ring_arrival(set, 0, 100);
    /* As hot as the coldest is not enough; hotter by a margin is. */
    ck_assert_int_eq(arrive(set, 3, 8, &slot), ST_POLL_STAY);
    ck_assert_int_eq(arrive(set, 3, 1, &slot), ST_POLL_EVICT);
    ck_assert_uint_eq(slot, 1);
    ck_assert_int_eq(arrive(set, 3, 3, &slot), ST_POLL_STAY); /* under way */
    st_polling_set_left(set, 1);
    ck_assert_int_eq(arrive(set, 3, 1, &slot), ST_POLL_PROMOTE);
    ck_assert_uint_eq(slot, 1);
    st_polling_set_left(set, 1); /* the ring could not be had: the slot is free again */
    ck_assert_int_eq(arrive(set, 3, 1, &slot), ST_POLL_PROMOTE);
    st_polling_set_destroy(set);
}
END_TEST

START_TEST(order_follows_use)
{
    struct st_polling_set_config c = {.max_members = 4, .promote_after = 1, .window = 100000};
    struct st_polling_set *set = make(&c, 100);
    uint32_t slot, n;
    const uint32_t *order;
    for (uint32_t p = 0; p < 4; p++) {
        arrive(set, p, 1, &slot);
        st_polling_set_joined(set, p, slot);
    }
    for (int i = 0; i < 3; i++)
        ck_assert(st_polling_set_ring_arrival(set, 3, 10)); /* one place further */
    ck_assert(!st_polling_set_ring_arrival(set, 3, 10));    /* it is the first already */
    ck_assert(st_polling_set_ring_arrival(set, 2, 5));
    st_polling_set_order(set, &order, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_uint_eq(order[0], 3);
    st_polling_set_left(set, 3);
    st_polling_set_order(set, &order, &n);
    ck_assert_uint_eq(n, 3);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < n; i++)
        seen |= 1u << order[i];
    ck_assert_uint_eq(seen, 7);
    st_polling_set_destroy(set);
}
END_TEST

START_TEST(pattern_changes_are_followed)
{
    /* Eight peers are hot, then eight others: within a few windows the set is theirs. */
    struct st_polling_set_config c = {.max_members = 8, .promote_after = 8, .window = 4096};
    struct st_polling_set *set = make(&c, 1000000);
    uint32_t owner[8], ring[1000];
    struct rnd rnd = {42};
    for (int i = 0; i < 8; i++)
        owner[i] = UINT32_MAX;
    for (int i = 0; i < 1000; i++)
        ring[i] = UINT32_MAX;
    uint64_t by_ring = 0;
    for (int step = 0; step < 100000; step++) {
        uint32_t base = step < 50000 ? 100 : 500;
        uint32_t peer = rnd_below(&rnd, 20) == 0 ? rnd_below(&rnd, 1000) : base + rnd_below(&rnd, 8), slot;
        if (ring[peer] != UINT32_MAX) {
            st_polling_set_ring_arrival(set, ring[peer], 1);
            by_ring++;
            continue;
        }
        switch (st_polling_set_shared_arrival(set, peer, &slot)) {
        case ST_POLL_PROMOTE:
            ck_assert_uint_eq(owner[slot], UINT32_MAX);
            owner[slot] = peer;
            ring[peer] = slot;
            st_polling_set_joined(set, peer, slot);
            break;
        case ST_POLL_EVICT:
            ring[owner[slot]] = UINT32_MAX;
            owner[slot] = UINT32_MAX;
            st_polling_set_left(set, slot);
            break;
        case ST_POLL_STAY:
            break;
        }
    }
    ck_assert_uint_ge(by_ring, 80000);
    int mine = 0;
    for (int i = 0; i < 8; i++)
        mine += owner[i] >= 500 && owner[i] < 508;
    ck_assert_int_ge(mine, 7);
    /* Memory follows the size of the set, not of the world. */
    ck_assert_uint_le(st_polling_set_bytes(set), 4096);
    st_polling_set_destroy(set);
}
END_TEST

/* The peer's last of n arrivals promotes it to `slot`, where it joins. */
static void joins(struct st_polling_set *set, uint32_t peer, int n, uint32_t slot)
{
    uint32_t got = 99;
    ck_assert_int_eq(arrive(set, peer, n, &got), ST_POLL_PROMOTE);
    ck_assert_uint_eq(got, slot);
    st_polling_set_joined(set, peer, slot);
}

/* The peer's last of n arrivals takes `slot` from its member. */
static void evicts(struct st_polling_set *set, uint32_t peer, int n, uint32_t slot)
{
    uint32_t got = 99;
    ck_assert_int_eq(arrive(set, peer, n, &got), ST_POLL_EVICT);
    ck_assert_uint_eq(got, slot);
}

/* A small set that favours the peers of the text; `hint` lives as long as the set. */
static struct st_polling_set *make_favouring(const char *text, struct st_peer_ranges *hint)
{
    struct st_polling_set *set = make(&small, 100);
    const char *mistake;
    ck_assert_int_eq(st_peer_ranges_parse(text, hint, &mistake), STRATA_OK);
    st_polling_set_favour(set, hint);
    return set;
}

/* A favoured peer is promoted at once, in place of the coldest of the others, and gives way to a favoured one only. */
START_TEST(favoured_peers_stay)
{
    struct st_peer_ranges hint;
    struct st_polling_set *set = make_favouring("7,20-21", &hint);
    uint32_t slot;

    joins(set, 7, 1, 0);
    ck_assert_int_eq(arrive(set, 1, 3, &slot), ST_POLL_STAY);
    joins(set, 1, 1, 1);
    st_polling_set_ring_arrival(set, 1, 200);
    /* Slot 0 is colder but favoured, so peer 2 is compared with slot 1. */
    ck_assert_int_eq(arrive(set, 2, 100, &slot), ST_POLL_STAY);
    evicts(set, 20, 1, 1);
    ck_assert_int_eq(arrive(set, 20, 1, &slot), ST_POLL_STAY);
    st_polling_set_left(set, 1);
    joins(set, 20, 1, 1);
    /* Favoured peers hold all slots: others get none; a favoured newcomer must exceed the coldest by the margin. */
    ck_assert_int_eq(arrive(set, 2, 100, &slot), ST_POLL_STAY);
    st_polling_set_ring_arrival(set, 0, 10);
    ck_assert_int_eq(arrive(set, 21, 7, &slot), ST_POLL_STAY);
    evicts(set, 21, 1, 1);
    st_polling_set_destroy(set);
    st_peer_ranges_free(&hint);
}
END_TEST

/* One newcomer takes one slot, however many of its messages come before that is free; and the peer that it was taken
 * from does not get it back first, unless the newcomer is silent until counts are halved. */
START_TEST(taken_slots_have_an_heir)
{
    struct st_peer_ranges hint;
    struct st_polling_set *set = make_favouring("0,7", &hint);
    uint32_t slot;

    joins(set, 1, 4, 0);
    joins(set, 2, 4, 1);
    evicts(set, 7, 1, 0);
    ck_assert_int_eq(arrive(set, 7, 5, &slot), ST_POLL_STAY);
    st_polling_set_left(set, 0);
    evicts(set, 1, 5, 1); /* the other slot, since its own is not to be had */
    joins(set, 7, 1, 0);
    st_polling_set_left(set, 1);
    ck_assert_int_eq(arrive(set, 2, 100, &slot), ST_POLL_STAY);
    /* Peer 1 is silent until counts are halved, by other peers' arrivals. */
    for (uint32_t i = 0; i < small.window; i++)
        st_polling_set_ring_arrival(set, 0, 1);
    joins(set, 2, 1, 1);
    st_polling_set_destroy(set);
    st_peer_ranges_free(&hint);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("polling_set");
    TCase *t = tcase_create("all");
    tcase_add_test(t, bad_config);
    tcase_add_test(t, an_unusable_slot_is_given_to_nobody);
    tcase_add_test(t, first_hot_peers_join);
    tcase_add_test(t, hotter_peer_replaces_coldest);
    tcase_add_test(t, order_follows_use);
    tcase_add_test(t, pattern_changes_are_followed);
    tcase_add_test(t, favoured_peers_stay);
    tcase_add_test(t, taken_slots_have_an_heir);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
