/* Cards of channels whose name is right, so that the sender opens the ring that they describe: sizes, paths, keys and
 * addresses that cannot be, over every transport that is found. A card of a ring that cannot be breaks the
 * sender's channel with STRATA_ERR_PROTOCOL, and an honest channel beside it goes on; a card that leads elsewhere may
 * cost the peer its connection, and nothing else.
 *
 * STRATA_FUZZ_SEED=N runs one seed; STRATA_CONFORMANCE=WORD only the settings that contain the word. */
#include <check.h>
#include <strata/channel.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/pml.h>
#include "channel/channel.h"
#include "support/found.h"
#include "support/run_suite.h"
#include "support/suite.h"
#include "support/way.h"

enum { RING = 4096, MEMORY = RING + MAPPED_MORE, HALF = 2 << 20, LENGTHS = 300 };

static uint64_t seeds[] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 1234567, 0xdeadbeef, 0x5eed};
enum { SEEDS = sizeof seeds / sizeof seeds[0], CARDS = 24 };

/* Rank 1's memory: what a true card would name lies in the middle, so that bytes that land beside it hit nothing of
 * this process, which has both ranks. */
struct liar {
    struct tw_rank *r;
    struct st_peer *peer;
    struct st_btl *btl;
    struct st_shared_piece piece;
    struct st_btl_reg reg;
    struct channel_card card; /* a true one */
    uint32_t use;
};
/* The ranks tell each other, between two barriers: rank 1 the card, rank 0 what became of it. */
static struct {
    struct channel_card card;
    bool opened, failed, lost[2];
} told;

static void liar_begin(struct liar *l, struct tw_rank *r)
{
    struct st_worker *w = r->comm->worker;
    struct st_mpool *pool = st_mpool(r->s);
    int rc;
    *l = (struct liar){.r = r};
    CHECK_OK(pool->ops->alloc_shared(pool, (size_t)2 * HALF, &l->piece));
    st_worker_lock(w);
    CHECK_OK(st_worker_peer(w, 0, &l->peer));
    CHECK_OK(st_worker_connect(w, l->peer));
    l->btl = st_peer_path(l->peer, 0)->btl;
    st_worker_unlock(w);
    do {
        strata_progress(r->s);
        st_worker_lock(w);
        rc = l->btl->rdma->reg(l->btl, l->piece.memory + HALF, MEMORY, ST_BTL_ANY_USE, &l->reg);
        st_worker_unlock(w);
    } while (rc == STRATA_ERR_AGAIN);
    CHECK_OK(rc);
    l->card = (struct channel_card){.card = {.base = (uint64_t)(uintptr_t)l->piece.memory + HALF, .size = RING},
                                    .mappable = l->btl->rdma->map != NULL,
                                    .name = "x"};
    memcpy(l->card.card.key, l->reg.key, sizeof l->reg.key);
}
static void liar_end(struct liar *l)
{
    struct st_mpool *pool = st_mpool(l->r->s);
    st_worker_lock(l->r->comm->worker);
    l->btl->rdma->dereg(l->btl, &l->reg);
    st_worker_unlock(l->r->comm->worker);
    pool->ops->free_shared(pool, &l->piece);
}
static void say(struct liar *l, enum channel_kind kind, uint32_t ring, const struct channel_card *card)
{
    struct channel_head head = {.kind = kind, .ring = ring, .id = l->use};
    struct st_worker *w = l->r->comm->worker;
    int rc;
    do {
        strata_progress(l->r->s);
        st_worker_lock(w);
        struct st_btl_endpoint *ep = st_peer_way(l->peer, 0);
        rc = l->peer->failed ? l->peer->failed
                             : ep->btl->ops->send(ep, ST_AM_STREAM, &head, sizeof head, card, card ? sizeof *card : 0);
        st_worker_unlock(w);
    } while (rc == STRATA_ERR_AGAIN);
}

/* ---- one card ---- */

/* Sends by the ring of a card until it is full, or broken: what became of it. */
static int use(strata_channel_sender_t *c, struct rnd *rnd)
{
    static _Thread_local char zeros[RING * 3];
    int rc = STRATA_OK;
    for (int i = 0; i < 40 && rc == STRATA_OK; i++)
        rc = rnd_below(rnd, 20) ? strata_channel_send(c, zeros, rnd_below(rnd, LENGTHS), 0)
                                : strata_channel_send(c, zeros, rnd_below(rnd, sizeof zeros), 0);
    if (rc == STRATA_OK)
        rc = strata_channel_flush(c);
    /* The arguments of these calls are right. */
    CHECK_MSG(rc == STRATA_OK || rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_PROTOCOL || rc == STRATA_ERR_PEER ||
                  rc == STRATA_ERR_NOMEM || rc == STRATA_ERR_UNSUPPORTED,
              "a forged card gives %d (%s)", rc, strata_strerror(rc));
    return rc;
}

/* Whether a card is refused as it arrives. */
static bool dropped(const struct channel_card *card)
{
    return card->path > UINT8_MAX || card->mappable > 1 || card->card.name >= ST_LANDING_NAMES;
}
static bool has_come(struct tw_rank *r, const struct channel_peer *with, uint32_t ring)
{
    st_worker_lock(r->comm->worker);
    const struct channel_offer *o = channel_offer_of(with, ring);
    bool come = (o && o->carded) || with->peer->failed;
    st_worker_unlock(r->comm->worker);
    return come;
}

/* Rank 0 has one sender of the name; a card that was dropped leaves it without a ring. */
static int taken(struct tw_rank *r, strata_channel_sender_t **c, const struct channel_card *card, struct rnd *rnd)
{
    int rc = *c ? STRATA_OK : strata_channel_open_send(r->s, 1, "x", c);
    if (rc != STRATA_OK) {
        CHECK_RC(rc, STRATA_ERR_PEER); /* bytes that were put have cost the connection, and the peer with it */
        *c = NULL;
        told.failed = true;
        return rc;
    }
    while (!dropped(card) && !has_come(r, (*c)->with, card->card.name))
        strata_progress(r->s);
    rc = use(*c, rnd);
    told.opened = (*c)->offer != NULL;
    told.failed = (*c)->with->peer->failed != STRATA_OK;
    CHECK(told.opened == !dropped(card) || told.failed);
    return rc;
}
/* One card, by both ranks: what became of it at rank 0. */
static int one(struct tw_rank *r, struct liar *l, strata_channel_sender_t **c, struct rnd *rnd)
{
    int rc = STRATA_OK;
    if (r->rank == 1)
        say(l, CHANNEL_CARD, told.card.card.name, &told.card);
    else
        rc = taken(r, c, &told.card, rnd);
    tw_quiesce(r);
    if (r->rank == 1 && told.opened)
        say(l, CHANNEL_STOP, told.card.card.name, NULL);
    if (r->rank == 0 && *c && (told.opened || told.failed)) {
        int closed = strata_channel_close_send(*c);
        CHECK(closed == STRATA_ERR_PEER || (closed < 0 && closed == rc));
        *c = NULL;
    }
    tw_quiesce(r);
    l->use++;
    return rc;
}

/* A channel beside the forged one, by which messages come as they were sent. False: its connection is lost. */
static bool honest(struct tw_rank *r, strata_channel_sender_t *out, strata_channel_receiver_t *in)
{
    char bytes[LENGTHS];
    int rc = STRATA_OK;
    for (uint32_t i = 0; i < 50 && rc == STRATA_OK; i++) {
        size_t len;
        if (r->rank == 0) {
            pattern_fill(bytes, i, i);
            rc = strata_channel_send(out, bytes, i, STRATA_CHANNEL_FOREVER);
        } else if ((rc = strata_channel_recv(in, bytes, sizeof bytes, &len, STRATA_CHANNEL_FOREVER)) == STRATA_OK) {
            CHECK_EQ(len, i);
            CHECK_EQ(pattern_check(bytes, i, i), -1);
        }
    }
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    told.lost[r->rank] = rc != STRATA_OK;
    tw_quiesce(r);
    return !told.lost[0] && !told.lost[1];
}

/* ---- cards by hand ---- */

static void wrong_size(struct channel_card *c, uint64_t n)
{
    c->card.size = (uint32_t)n;
}
static void wrong_path(struct channel_card *c, uint64_t n)
{
    c->path = (uint32_t)n;
    c->mappable = 1;
}
static void other_base(struct channel_card *c, uint64_t n)
{
    c->card.base += n;
}
static void any_base(struct channel_card *c, uint64_t n)
{
    c->card.base = n;
}
static void no_key(struct channel_card *c, uint64_t n)
{
    memset(c->card.key, (int)n, sizeof c->card.key);
    c->card.base += 64; /* at which no key registered before points */
}
static void mappable(struct channel_card *c, uint64_t n)
{
    c->mappable = (uint32_t)n;
}

struct by_hand {
    void (*change)(struct channel_card *c, uint64_t n);
    uint64_t n;
    bool refused; /* no such ring can be: nothing is put */
};
/* Addresses that hit nothing of this process, which is both ranks'. */
static const struct by_hand by_hand[] = {
    {wrong_size, 0, true},
    {wrong_size, 1, true},
    {wrong_size, ST_LANDING_LEAST - 1, true},
    {wrong_size, RING + 1, true},
    {wrong_size, ST_LANDING_MOST + 1, true},
    {wrong_size, 2 * ST_LANDING_MOST, true},
    {wrong_size, (uint64_t)1 << 31, true},
    {wrong_size, UINT32_MAX, true},
    {wrong_size, UINT32_MAX - MAPPED_MORE + 1, true},
    {wrong_path, 1, true},
    {wrong_path, UINT8_MAX, true},
    {mappable, 0, false},
    {mappable, 1, false},
    {wrong_size, 2 * RING, false}, /* beyond the memory that the key names */
    {other_base, 8, false},
    {other_base, MEMORY - 64, false},
    {other_base, MEMORY, false},
    {other_base, (uint64_t)-64, false},
    {any_base, 0, false},
    {any_base, UINT64_MAX - 63, false},
    {any_base, UINT64_MAX - RING + 1, false},
    {any_base, (uint64_t)1 << 63, false},
    {no_key, 0, false},
    {no_key, 0xff, false},
};

/* ---- cards by seeds ---- */

static uint32_t nasty(struct rnd *rnd, uint32_t right)
{
    static const uint32_t list[] = {0, 1, 255, 256, 1 << 20, 1 << 21, 1u << 31, UINT32_MAX, UINT32_MAX - 63};
    switch (rnd_below(rnd, 4)) {
    case 0:
        return list[rnd_below(rnd, sizeof list / sizeof list[0])];
    case 1:
        return right + rnd_below(rnd, 129) - 64;
    case 2:
        return 1u << rnd_below(rnd, 32);
    default:
        return right;
    }
}
/* A key that may lead elsewhere, though not far: rank 1's other memory is this process's, too. */
static void spoil_key(struct rnd *rnd, uint8_t key[ST_BTL_KEY_MAX])
{
    uint32_t words[ST_BTL_KEY_MAX / 4], at = rnd_below(rnd, ST_BTL_KEY_MAX / 4);
    memcpy(words, key, sizeof words);
    switch (rnd_below(rnd, 4)) {
    case 0:
        words[at] += rnd_below(rnd, 17) - 8;
        break;
    case 1:
        words[at] += 64 * (rnd_below(rnd, 4097) - 2048);
        break;
    case 2:
        words[at] ^= 0x80000000u;
        break;
    default:
        for (uint32_t i = 0; i < ST_BTL_KEY_MAX / 4; i++)
            words[i] = (uint32_t)rnd_next(rnd) | 0x80000000u;
    }
    memcpy(key, words, sizeof words);
}
static void spoil(struct rnd *rnd, uint32_t i, struct channel_card *card)
{
    card->card.name = rnd_below(rnd, 20) ? 1 + i : nasty(rnd, 1 + i);
    if (card->card.name == 0)
        card->card.name = 1; /* 0 is the honest channel's */
    if (rnd_below(rnd, 2))
        card->card.size = nasty(rnd, RING);
    if (rnd_below(rnd, 4) == 0)
        card->path = nasty(rnd, 0);
    if (rnd_below(rnd, 4) == 0)
        card->mappable = nasty(rnd, 1);
    if (rnd_below(rnd, 3) == 0)
        spoil_key(rnd, card->card.key);
    if (rnd_below(rnd, 4) == 0)
        card->card.base += rnd_below(rnd, 2) ? (uint64_t)rnd_below(rnd, HALF) - HALF / 2 : rnd_below(rnd, 129) - 64;
    else if (rnd_below(rnd, 8) == 0)
        card->card.base = rnd_below(rnd, 2) ? rnd_below(rnd, 4096) : UINT64_MAX - rnd_below(rnd, 4096);
}

/* ---- jobs ---- */

/* Cards by hand from `next` to `end`, or by `made`. One job's connection may be lost; the next job has the rest. */
static struct {
    uint32_t next, end, opened, lost;
    bool by_hand;
    struct rnd made, used;
} plan;

static void make(const struct liar *l)
{
    told.card = l->card;
    told.opened = told.failed = false;
    if (plan.by_hand) {
        told.card.card.name = 1;
        by_hand[plan.next].change(&told.card, by_hand[plan.next].n);
    } else {
        spoil(&plan.made, plan.next, &told.card);
    }
}

/* Cards until the connection is lost: false. */
static bool job_cards(struct tw_rank *r, struct liar *l, strata_channel_sender_t **c, strata_channel_sender_t *out,
                      strata_channel_receiver_t *in)
{
    bool goes_on = honest(r, out, in);
    CHECK(goes_on);
    for (uint32_t i = plan.next; goes_on && i < plan.end; i++) {
        bool refused = plan.by_hand && by_hand[i].refused;
        if (r->rank == 1)
            make(l);
        tw_quiesce(r);
        int logged = tw_log_count(r->world, ST_LOG_WARN), rc = one(r, l, c, &plan.used);
        if (r->rank == 0 && refused) {
            CHECK_RC(rc, STRATA_ERR_PROTOCOL);
            CHECK_EQ(tw_log_count(r->world, ST_LOG_WARN), logged + 1);
        }
        goes_on = !told.failed && honest(r, out, in);
        CHECK(goes_on || !refused);
        if (r->rank == 0) {
            plan.opened += told.opened;
            plan.next = i + 1;
        }
        tw_quiesce(r);
    }
    return goes_on;
}
static void job(struct tw_rank *r)
{
    struct liar l = {0};
    strata_channel_sender_t *out = NULL, *c = NULL;
    strata_channel_receiver_t *in = NULL;
    if (r->rank == 1) {
        liar_begin(&l, r);
        CHECK_OK(strata_channel_open_recv(r->s, 0, "honest", RING, &in));
        CHECK_EQ(in->ring, 0);
    } else {
        CHECK_OK(strata_channel_open_send(r->s, 1, "honest", &out));
    }
    bool lost = !job_cards(r, &l, &c, out, in);
    tw_quiesce(r);
    if (r->rank == 1) {
        (void)strata_channel_close_recv(in);
        liar_end(&l);
    } else {
        plan.lost += lost;
        if (c) { /* its card was dropped */
            CHECK_OK(strata_host_peer_failed(r->s, 1, "the test says so"));
            CHECK_RC(strata_channel_close_send(c), STRATA_ERR_PEER);
        }
        (void)strata_channel_close_send(out);
    }
    tw_quiesce(r);
}

enum { SETTINGS = 8 };
static char settings[SETTINGS][120];
static int n_settings, n_seeds = SEEDS;

static void jobs(const char *with)
{
    fprintf(stderr, "run %s\n", with + strlen("btl="));
    while (plan.next < plan.end)
        tw_run(&(struct tw_options){.n = 2, .settings = with, .quiet = true}, job, NULL);
    fprintf(stderr, "%u rings opened, %u connections lost\n", plan.opened, plan.lost);
    CHECK(plan.lost == 0 || !strstr(with, "btl=sm,")); /* there is none */
}
START_TEST(cards_by_hand)
{
    for (uint32_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++) {
        plan.by_hand = true;
        plan.next = i;
        plan.end = i + 1;
        plan.used.state = i;
        jobs(settings[_i]);
    }
    CHECK_EQ(plan.opened, sizeof by_hand / sizeof by_hand[0]);
}
END_TEST
START_TEST(cards_by_seed)
{
    memset(&plan, 0, sizeof plan);
    plan.made.state = seeds[_i % n_seeds];
    plan.used.state = seeds[_i % n_seeds] + 1;
    plan.end = test_sanitized() ? CARDS / 4 : CARDS;
    jobs(settings[_i / n_seeds]);
    CHECK(plan.opened >= plan.end / 3);
}
END_TEST

static void add(const char *with)
{
    const char *only = getenv("STRATA_CONFORMANCE");
    CHECK(n_settings < SETTINGS);
    if (!only || strstr(with, only))
        snprintf(settings[n_settings++], sizeof settings[0], "%s", with);
}
/* Not btl_shuffle: it copies to any address of this process, or takes one that is not registered for a caller's bug. */
static void add_found(const char *name)
{
    char with[80];
    snprintf(with, sizeof with, "btl=%s,self", name);
    if (strcmp(name, "self") != 0 && strcmp(name, "shuffle") != 0)
        add(with);
}

int main(void)
{
    const char *seed = getenv("STRATA_FUZZ_SEED");
    if (seed) {
        seeds[0] = strtoull(seed, NULL, 0);
        n_seeds = 1;
    }
    found_btls(add_found);
    Suite *s = suite_create("channel-card");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, cards_by_hand, 0, n_settings);
    tcase_add_loop_test(tc, cards_by_seed, 0, n_settings * n_seeds);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
