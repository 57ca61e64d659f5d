/* Places of hot peers change hands: who is told what, when; a simulated user in which each peer sends by its place
 * while it has one, and nothing is lost, doubled or sent to a place that another has. */
#include <check.h>
#include <string.h>

#include <strata/sdk/hot_peers.h>
#include "support/random.h"
#include "support/run_suite.h"

enum { PEERS = 12, PLACES = 3, QUEUE = 4000 };

static struct st_hot hot;
static uint32_t word[PEERS]; /* as the peers see them */
static int n_ready, n_ordered, n_nudged;
static int not_ready_after;
static bool nudge_later;

static int ready(void *arg, uint32_t place, uint32_t peer)
{
    ck_assert_ptr_eq(arg, &hot);
    ck_assert_uint_lt(place, PLACES);
    ck_assert_uint_lt(peer, PEERS);
    ck_assert_uint_eq(word[peer], 0); /* told only when it is ready */
    return ++n_ready > not_ready_after ? STRATA_ERR_NOMEM : STRATA_OK;
}
static void tell(void *arg, uint32_t peer, uint32_t w)
{
    ck_assert_ptr_eq(arg, &hot);
    word[peer] = w;
}
static void ordered(void *arg)
{
    ck_assert_ptr_eq(arg, &hot);
    n_ordered++;
}
static const struct st_hot_ops ops = {.ready = ready, .tell = tell, .ordered = ordered};

static int nudge(void *arg, uint32_t place, uint32_t peer)
{
    ck_assert_ptr_eq(arg, &hot);
    ck_assert_uint_eq(hot.places[place].peer, peer);
    n_nudged++;
    return nudge_later ? STRATA_ERR_AGAIN : STRATA_OK;
}

static void begin(void)
{
    const struct st_polling_set_config c = {.max_members = PLACES, .promote_after = 3, .window = 64};
    memset(word, 0, sizeof word);
    n_ready = n_ordered = n_nudged = 0;
    not_ready_after = 1 << 30;
    nudge_later = false;
    ck_assert_int_eq(st_hot_create(&hot, &c, PEERS, &ops, &hot), STRATA_OK);
}
static void end(void)
{
    st_hot_destroy(&hot);
    st_hot_destroy(&hot); /* once more does no harm */
    ck_assert_uint_eq(st_hot_bytes(&hot), 0);
}

static void shared(uint32_t peer, int n)
{
    while (n-- > 0)
        st_hot_shared_arrival(&hot, peer);
}

START_TEST(a_hot_peer_gets_a_place)
{
    ck_assert_uint_gt(st_hot_bytes(&hot), 0);
    shared(5, 2);
    ck_assert_uint_eq(word[5], 0);
    ck_assert_uint_eq(st_hot_place_of(&hot, 5), ST_HOT_NONE);
    shared(5, 1);
    ck_assert_uint_ne(word[5], 0);
    uint32_t place = st_hot_word_place(word[5]);
    ck_assert_uint_eq(st_hot_place_of(&hot, 5), place);
    ck_assert_int_eq(hot.places[place].state, ST_HOT_GRANTED);
    ck_assert_uint_eq(hot.n_order, 1);
    ck_assert_uint_eq(hot.order[0], place);
    ck_assert_int_ge(n_ordered, 1);
}
END_TEST

/* Fills all places, then makes peer 9 hotter than any. Returns the place that is taken away. */
static uint32_t evict(void)
{
    for (uint32_t p = 0; p < PLACES; p++)
        shared(p, 3);
    ck_assert_uint_eq(hot.n_order, PLACES);
    for (int i = 0; i < 1000 && hot.n_revoked == 0; i++)
        shared(9, 1);
    ck_assert_uint_eq(hot.n_revoked, 1);
    ck_assert_uint_eq(word[9], 0);
    for (uint32_t i = 0; i < PLACES; i++)
        if (hot.places[i].state == ST_HOT_REVOKED)
            return i;
    ck_abort();
}

START_TEST(a_place_is_handed_over_after_the_farewell)
{
    uint32_t i = evict(), before = hot.places[i].peer;
    ck_assert_uint_eq(word[before], 0);
    ck_assert_uint_eq(hot.n_order, PLACES); /* polled on */
    nudge_later = true;
    st_hot_nudge(&hot, nudge);
    nudge_later = false;
    st_hot_nudge(&hot, nudge);
    st_hot_nudge(&hot, nudge);
    ck_assert_int_eq(n_nudged, 2); /* until it could be said, once */
    st_hot_left(&hot, i);
    ck_assert_uint_eq(hot.n_revoked, 0);
    for (int n = 0; n < 1000 && word[9] == 0; n++)
        shared(9, 1);
    ck_assert_uint_eq(st_hot_word_place(word[9]), i);
}
END_TEST

START_TEST(all_places_are_revoked)
{
    uint32_t i = evict();
    st_hot_revoke_all(&hot);
    st_hot_revoke_all(&hot); /* once more changes nothing */
    ck_assert_uint_eq(hot.n_revoked, PLACES);
    for (uint32_t p = 0; p < PLACES; p++)
        ck_assert_uint_eq(word[p], 0);
    ck_assert_uint_eq(hot.n_order, PLACES); /* polled until their farewells */
    for (uint32_t p = 0; p < PLACES; p++)
        st_hot_left(&hot, (i + p) % PLACES);
    ck_assert_uint_eq(hot.n_revoked, 0);
    ck_assert_uint_eq(hot.n_order, 0);
    shared(2, 3);
    ck_assert_uint_ne(word[2], 0); /* it may have one again */
}
END_TEST

START_TEST(a_broken_place_is_given_to_nobody)
{
    for (int granted = 0; granted < 2; granted++) {
        end();
        begin();
        uint32_t i = evict();
        if (granted)
            i = hot.places[0].state == ST_HOT_GRANTED ? 0 : 1;
        st_hot_broken(&hot, i);
        ck_assert_uint_eq(word[hot.places[i].peer], 0);
        ck_assert_uint_eq(hot.n_revoked, (uint32_t)granted);
        ck_assert_uint_eq(hot.n_order, PLACES - 1);
        ck_assert_uint_eq(st_hot_place_of(&hot, hot.places[i].peer), i);
        for (uint32_t p = 0; p < PEERS; p++)
            shared(p, 20);
        ck_assert_int_eq(hot.places[i].state, ST_HOT_BROKEN);
    }
}
END_TEST

/* Those that are ready change hands as before. */
START_TEST(a_place_that_is_not_ready_is_given_to_nobody)
{
    not_ready_after = 1;
    shared(1, 3);
    shared(2, 3);
    ck_assert_uint_ne(word[1], 0);
    ck_assert_uint_eq(word[2], 0);
    ck_assert_int_eq(n_ready, 2);
    ck_assert_uint_eq(hot.n_unusable, 1);
    shared(2, 1); /* the last free one */
    ck_assert_uint_eq(word[2], 0);
    ck_assert_int_eq(n_ready, PLACES);
    ck_assert_uint_eq(hot.n_unusable, PLACES - 1);
    not_ready_after = 1 << 30;
    st_hot_revoke_all(&hot);
    st_hot_left(&hot, st_hot_place_of(&hot, 1));
    for (uint32_t peer = 3; peer < PEERS; peer++) {
        uint32_t place;
        for (int n = 0; n < 1000 && word[peer] == 0; n++) {
            shared(peer, 1);
            for (uint32_t i = 0; i < PLACES; i++)
                if (hot.places[i].state == ST_HOT_REVOKED)
                    st_hot_left(&hot, i);
        }
        ck_assert_uint_ne(word[peer], 0);
        place = st_hot_place_of(&hot, peer);
        ck_assert_uint_eq(place, st_hot_word_place(word[peer]));
        ck_assert_uint_eq(place, 0);
    }
    ck_assert_uint_eq(hot.n_order, 1);
}
END_TEST

START_TEST(no_place_is_granted_when_none_is_ready)
{
    not_ready_after = 0;
    for (uint32_t peer = 0; peer < PEERS; peer++)
        shared(peer, 20);
    ck_assert_int_eq(n_ready, PLACES);
    ck_assert(hot.off);
    for (uint32_t peer = 0; peer < PEERS; peer++)
        ck_assert_uint_eq(word[peer], 0);
}
END_TEST

START_TEST(a_place_is_given_up)
{
    shared(1, 3);
    shared(2, 3);
    uint32_t place = st_hot_place_of(&hot, 1);
    st_hot_give_up(&hot, place);
    st_hot_give_up(&hot, place); /* once more changes nothing */
    ck_assert_uint_eq(word[1], 0);
    ck_assert_uint_ne(word[2], 0); /* others keep theirs */
    ck_assert_uint_eq(hot.n_revoked, 1);
    st_hot_left(&hot, place);
    shared(1, 100);
    shared(3, 100);
    ck_assert_uint_eq(word[1], 0);
    ck_assert_uint_eq(word[3], 0);
}
END_TEST

START_TEST(too_many_places)
{
    struct st_hot none;
    const struct st_polling_set_config many = {.max_members = ST_HOT_MOST + 1, .promote_after = 1, .window = 1};
    const struct st_polling_set_config zero = {.max_members = 0, .promote_after = 1, .window = 1};
    ck_assert_int_eq(st_hot_create(&none, &many, 4, &ops, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(st_hot_create(&none, &zero, 4, &ops, NULL), STRATA_OK);
    st_hot_shared_arrival(&none, 1);
    st_hot_destroy(&none);
}
END_TEST

START_TEST(what_a_word_asks)
{
    struct st_hot_grant g = {.word = ST_HOT_NONE};
    ck_assert_int_eq(st_hot_turn(&g, 0), ST_HOT_STAY);
    ck_assert_int_eq(st_hot_turn(&g, ST_HOT_NONE), ST_HOT_STAY);
    ck_assert_int_eq(st_hot_turn(&g, 0x10002), ST_HOT_TAKE);
    g.word = 0x10002;
    ck_assert_int_eq(st_hot_turn(&g, 0x10002), ST_HOT_STAY);
    ck_assert_int_eq(st_hot_turn(&g, 0), ST_HOT_LEAVE);
    ck_assert_int_eq(st_hot_turn(&g, 0x20001), ST_HOT_LEAVE);
    g = (struct st_hot_grant){.word = ST_HOT_NONE, .left = 0x10002};
    ck_assert_int_eq(st_hot_turn(&g, 0x10002), ST_HOT_STAY); /* its farewell has not been read */
    ck_assert_int_eq(st_hot_turn(&g, 0x30002), ST_HOT_TAKE);
}
END_TEST

/* A message: number and who has sent it; FAREWELL ends a place. */
enum { FAREWELL = -1 };
struct queue {
    int item[QUEUE], from[QUEUE];
    int head, tail;
};
static void put(struct queue *q, int from, int item)
{
    ck_assert_int_lt(q->tail, QUEUE);
    q->from[q->tail] = from;
    q->item[q->tail++] = item;
}

START_TEST(nothing_is_lost_or_doubled)
{
    static struct queue place[PLACES], by_queue;
    static int sent[PEERS];
    static uint8_t got[PEERS][QUEUE];
    struct st_hot_grant grant[PEERS];
    struct rnd rnd = {(uint64_t)_i + 1};
    int hottest = 0, total = 0, arrived = 0;
    memset(place, 0, sizeof place);
    memset(&by_queue, 0, sizeof by_queue);
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    for (int p = 0; p < PEERS; p++)
        grant[p] = (struct st_hot_grant){.word = ST_HOT_NONE};
    hot.generation = 0x7ffa; /* it runs over on the way */
    for (int step = 0; step < 9000; step++) {
        if (rnd_below(&rnd, 200) == 0)
            hottest = (int)rnd_below(&rnd, PEERS);
        int p = rnd_below(&rnd, 3) ? hottest : (int)rnd_below(&rnd, PEERS);
        struct st_hot_grant *g = &grant[p];
        bool sends = step < 6000 && total < QUEUE / 2 && rnd_below(&rnd, 2);
        if (sends || rnd_below(&rnd, 10) == 0) { /* it looks at its word before it sends, or because it was nudged */
            if (st_hot_turn(g, word[p]) == ST_HOT_LEAVE) {
                put(&place[st_hot_word_place(g->word)], p, FAREWELL);
                g->left = g->word;
                g->word = ST_HOT_NONE;
            } else if (st_hot_turn(g, word[p]) == ST_HOT_TAKE) {
                g->word = word[p];
            }
        }
        if (sends) {
            put(g->word != ST_HOT_NONE ? &place[st_hot_word_place(g->word)] : &by_queue, p, sent[p]++);
            total++;
        }
        uint32_t i = rnd_below(&rnd, PLACES);
        if (rnd_below(&rnd, 2) && place[i].head < place[i].tail) {
            int from = place[i].from[place[i].head], item = place[i].item[place[i].head++];
            ck_assert_int_eq((int)hot.places[i].peer, from); /* nobody else's message lies in its place */
            if (item == FAREWELL) {
                st_hot_left(&hot, i);
            } else {
                ck_assert_int_eq(got[from][item]++, 0);
                st_hot_arrivals(&hot, i, 1);
                arrived++;
            }
        } else if (by_queue.head < by_queue.tail) {
            int from = by_queue.from[by_queue.head], item = by_queue.item[by_queue.head++];
            ck_assert_int_eq(got[from][item]++, 0);
            st_hot_shared_arrival(&hot, (uint32_t)from);
            arrived++;
        }
    }
    ck_assert_int_gt(n_ready, PLACES); /* places did change hands */
    for (uint32_t i = 0; i < PLACES; i++)
        for (; place[i].head < place[i].tail; place[i].head++)
            arrived += place[i].item[place[i].head] != FAREWELL;
    arrived += by_queue.tail - by_queue.head;
    ck_assert_int_eq(arrived, total);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hot_peers");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_hot_peer_gets_a_place);
    tcase_add_test(t, a_place_is_handed_over_after_the_farewell);
    tcase_add_test(t, all_places_are_revoked);
    tcase_add_test(t, a_broken_place_is_given_to_nobody);
    tcase_add_test(t, a_place_that_is_not_ready_is_given_to_nobody);
    tcase_add_test(t, no_place_is_granted_when_none_is_ready);
    tcase_add_test(t, a_place_is_given_up);
    tcase_add_test(t, too_many_places);
    tcase_add_test(t, what_a_word_asks);
    tcase_add_loop_test(t, nothing_is_lost_or_doubled, 0, 20);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
