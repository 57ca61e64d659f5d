/* Landing rings that break: peers that fail, paths that are lost, wrong calls; over every transport that strata-info
 * finds and the ways of btl_shuffle. */
#include "support/landing_rings.h"
#include "support/over_transports.h"

static bool breaks(const struct tw_rank *r)
{
    return strstr(r->arg, "break_after") != NULL;
}

enum { VICTIM = 0, BROKEN = 2 };

/* The sender is given up: a blocked receiver returns with the error. */
static void sender_fails(struct tw_rank *r)
{
    if (breaks(r))
        return;
    struct rings *u = join(r);
    int peer = 1 - r->rank;
    if (r->rank == 0) {
        open_in(u, 1, 2, RING);
        CHECK_OK(receive_one(u, 1, 2, 0));
        CHECK_OK(strata_host_peer_failed(r->s, peer, "the test says so"));
        CHECK_RC(st_landing_receiver_wait(u->in[1][2]), STRATA_ERR_PEER);
        CHECK_RC(take_one(u, 1, 2, 1), STRATA_ERR_PEER);
        close_in(u, 1, 2);
        tw_quiesce(r);
    } else {
        (void)open_out(u, 0);
        CHECK_OK(send_one(u, 0, 2, 0));
        tw_quiesce(r);
        CHECK_OK(strata_host_peer_failed(r->s, peer, "the test is over"));
        close_out(u, 0, 2);
    }
    tw_quiesce(r);
    leave(u);
}

/* The receiver is given up while the sender waits for room. */
static void receiver_fails(struct tw_rank *r)
{
    if (breaks(r))
        return;
    struct rings *u = join(r);
    int peer = 1 - r->rank;
    if (r->rank == VICTIM) {
        open_in(u, 1, 2, RING);
        tw_quiesce(r);
        CHECK_OK(strata_host_peer_failed(r->s, peer, "the test is over"));
    } else {
        struct st_landing_view v;
        struct opening o = open_out(u, VICTIM);
        uint32_t n = 0;
        while (st_landing_sender_reserve(u->out[VICTIM][2], length_of(seed_of(1, 2, n)), &v) == STRATA_OK)
            commit(u, u->out[VICTIM][2], &v, seed_of(1, 2, n), false), n++;
        tw_quiesce(r);
        CHECK_OK(strata_host_peer_failed(r->s, peer, "the test says so"));
        CHECK_RC(st_landing_sender_wait(u->out[VICTIM][2], LONGEST, &v), STRATA_ERR_PEER);
        CHECK_RC(st_landing_sender_finish(u->out[VICTIM][2]), STRATA_ERR_PEER);
        close_out(u, VICTIM, 2);
        struct st_landing_where at = where(u, VICTIM, 0);
        CHECK_RC(st_landing_sender_open(&at, &o.card, &u->out[VICTIM][2]), STRATA_ERR_PEER);
        CHECK_RC(st_landing_receiver_open(&at, RING, 7, &u->in[VICTIM][7], &o.card), STRATA_ERR_PEER);
    }
    tw_quiesce(r); /* a put without registration may be under way until the sender has closed */
    if (r->rank == VICTIM)
        close_in(u, 1, 2);
    tw_quiesce(r);
    leave(u);
}

/* Cards and arguments that cannot be. */
static void wrong_calls(struct tw_rank *r)
{
    if (breaks(r))
        return;
    static const struct st_landing_card bad[] = {
        {.size = 0}, {.size = 3000}, {.size = 1u << 31}, {.size = RING, .name = 1024}};
    struct rings *u = join(r);
    struct st_landing_where at = where(u, 1 - r->rank, 0);
    struct st_landing_sender *out = NULL;
    struct st_landing_receiver *in = NULL;
    struct st_landing_card card = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_RC(st_landing_sender_open(&at, &bad[i], &out), STRATA_ERR_ARG);
        CHECK_RC(st_landing_receiver_open(&at, bad[i].size, bad[i].name, &in, &card), STRATA_ERR_ARG);
    }
    at.path = 7;
    CHECK_RC(st_landing_receiver_open(&at, RING, 0, &in, &card), STRATA_ERR_ARG);
    at.path = 0;
    at.am = ST_AM_LANE;
    CHECK_RC(st_landing_receiver_open(&at, RING, 0, &in, &card), STRATA_ERR_ARG);
    CHECK(!in && !out && card.size == 0);
    tw_quiesce(r);
    leave(u);
}

/* ---- a path is lost: both go on in a fresh ring, from the first message that was not consumed ---- */

static bool waits(struct rings *u, int from, int tag)
{
    int there = 0;
    suite_spin(u->r->s, 1);
    CHECK_OK(strata_iprobe(u->r->comm, from, tag, &there, NULL));
    return there;
}
/* The sender says that the ring is broken: it names it, since the receiver may have a fresh one already. */
static bool sender_says(struct rings *u, uint32_t name)
{
    uint32_t which = UINT32_MAX;
    if (waits(u, 1, BROKEN))
        CHECK_OK(strata_recv(u->r->comm, &which, sizeof which, 1, BROKEN, NULL));
    return which == name;
}

static void lost_receiver(struct rings *u, uint32_t all)
{
    uint32_t n = 0, name = 0;
    open_in_by(u, 1, name, RING, IN_TURN, n);
    while (n < all) {
        int rc = take_one(u, 1, name, n);
        n += rc == STRATA_OK;
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_PEER);
        if (!sender_says(u, name) && rc != STRATA_ERR_PEER)
            continue;
        close_in(u, 1, name);
        CHECK(++name < RINGS);
        open_in_by(u, 1, name, RING, IN_TURN, n);
    }
    struct opening last = {.from = all};
    CHECK_OK(strata_send(u->r->comm, &last, sizeof last, 1, CARD));
    tw_quiesce(u->r); /* the sender has ended */
    close_in(u, 1, name);
    while (waits(u, 1, BROKEN))
        (void)sender_says(u, name);
    fprintf(stderr, "%u rings\n", name + 1);
    CHECK(name > 0);
}

/* What there is room for, until the ring is broken, or a card says so. */
static void lost_sender_one(struct rings *u, const struct opening *o, uint32_t all)
{
    uint32_t n = o->from, name = o->card.name;
    int rc = open_out_by(u, 0, o);
    struct st_landing_sender *out = u->out[0][name];
    while (rc == STRATA_OK && !waits(u, 0, CARD)) {
        uint64_t seed = seed_of(1, name, n);
        struct st_landing_view v;
        if (n < all && st_landing_sender_reserve(out, length_of(seed), &v) == STRATA_OK)
            commit(u, out, &v, seed, false), n++;
        rc = st_landing_sender_out(out)->rc;
    }
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    close_out(u, 0, name);
    if (rc == STRATA_ERR_PEER)
        CHECK_OK(strata_send(u->r->comm, &name, sizeof name, 0, BROKEN));
}

static void path_is_lost(struct tw_rank *r)
{
    if (!breaks(r))
        return;
    struct rings *u = join(r);
    uint32_t all = 1000;
    if (r->rank == 0) {
        lost_receiver(u, all);
    } else {
        for (struct opening o; (o = hear(u, 0)).from < all;)
            lost_sender_one(u, &o, all);
        tw_quiesce(r);
    }
    tw_quiesce(r);
    leave(u);
}

static const struct over_case cases[] = {
    {"sender_fails", sender_fails, 2, STRATA_THREAD_SINGLE, true},
    {"receiver_fails", receiver_fails, 2, STRATA_THREAD_SINGLE, true},
    {"wrong_calls", wrong_calls, 2, STRATA_THREAD_SINGLE, false},
    {"path_is_lost", path_is_lost, 2, STRATA_THREAD_SINGLE, true},
};

#define BREAKS "btl_shuffle_rails=3 btl_shuffle_break_rails=2 btl_shuffle_break_after=60 pml_ob1_path_retry_ms=1"

OVER_SUITE(landing_failure, OVER_PUTS, cases, "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100",
           "btl=shuffle,self " BREAKS,
           "btl=shuffle,self " BREAKS " btl_shuffle_break_silent=1 btl_shuffle_needs_reg=1");
