/* What the peer of a landing ring writes is not trusted: slots, notices and credits are made up and spoiled, for each
 * end alone, and between two ranks over the worker while honest messages go. A ring may break; nothing may be read or
 * written outside of it (the sanitizers watch), and no end goes on with numbers that cannot be.
 *
 * STRATA_FUZZ_SEED=N runs one seed, STRATA_FUZZ_ROUNDS=N changes how many things are made up. */
#include <check.h>
#include <strata/sdk/notify.h>
#include "framework/base/landing_slot.h"
#include "support/landing_rings.h"
#include "support/random.h"
#include "support/run_suite.h"

static uint64_t seeds[] = {1, 2, 3, 5, 8, 13, 21, 34, 1234567, 0xdeadbeef};
enum { SEEDS = sizeof seeds / sizeof seeds[0], SIZE = 2048, LINES = SIZE / ST_LANDING_LINE, NAME = 7 };

static uint32_t rounds(uint32_t n)
{
    const char *text = getenv("STRATA_FUZZ_ROUNDS");
    return text ? (uint32_t)atoi(text) : test_sanitized() ? n / 10 : n;
}

/* Values that lengths, numbers and counts dislike, and such as are nearly right. */
static uint32_t nasty(struct rnd *rnd, uint32_t right)
{
    static const uint32_t list[] = {0,       1,          2,          15,         16,         17,
                                    48,      49,         0x7f,       0xff,       SIZE,       0x3fff,
                                    0x4000,  0x7fff,     0x8000,     0xffff,     0x1ffff,    1 << 20,
                                    1 << 27, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 0xffffffc0};
    uint32_t kind = rnd_below(rnd, 100);
    if (kind > 3)
        return right;
    if (kind == 3)
        return right + rnd_below(rnd, 9) - 4;
    if (kind == 2)
        return (uint32_t)rnd_next(rnd);
    return list[rnd_below(rnd, sizeof list / sizeof list[0])] + (kind == 1 ? 0 : rnd_below(rnd, 5) - 2);
}

/* ---- the receiver ---- */

struct fuzzed_in {
    struct st_landing_in in;
    struct rnd rnd;
    char *ring; /* a block of its own */
    struct st_landing_view held[4];
    uint32_t n_held, messages, broken, credits;
};

static int tell(void *arg, uint32_t which, uint32_t notice)
{
    struct fuzzed_in *z = arg;
    CHECK(which < ST_LANDING_CREDITS && notice < 1u << 28);
    z->credits++;
    return rnd_below(&z->rnd, 3) ? STRATA_OK : STRATA_ERR_AGAIN;
}

static void in_bounds(const struct st_landing_view *v, const char *ring, uint32_t size)
{
    CHECK(v->first >= ring && v->first + v->first_len <= ring + size);
    CHECK(v->second_len == 0 || (v->second == ring && v->second_len <= size));
    CHECK(st_landing_length(v) <= size - ST_LANDING_HEAD);
}
/* Reads all of it. */
static void read_all(const struct st_landing_view *v, const char *ring, uint32_t size)
{
    static _Thread_local char bytes[RING];
    in_bounds(v, ring, size);
    st_landing_copy(v, bytes);
}

static void spoil_ring(struct fuzzed_in *z)
{
    struct st_landing_in *in = &z->in;
    uint32_t line = landing_place(in->read + (in->ready ? in->slot_lines : 0), LINES),
             room = LINES - (uint32_t)(in->read - in->told);
    struct landing_slot slot = {
        .len = nasty(&z->rnd, rnd_below(&z->rnd, room * 64 + 1)),
        .number = nasty(&z->rnd, in->number),
        .seen = nasty(&z->rnd, in->acknowledged + rnd_below(&z->rnd, in->credits - in->acknowledged + 1)),
        .flags = nasty(&z->rnd, rnd_below(&z->rnd, 2) | (rnd_below(&z->rnd, 20) ? 0 : rnd_below(&z->rnd, 16)))};
    if (rnd_below(&z->rnd, 10))
        slot.len = rnd_below(&z->rnd, 100);
    if (rnd_below(&z->rnd, 50) == 0)
        line = rnd_below(&z->rnd, LINES);
    if (slot.flags & (LANDING_ASK | LANDING_END) && rnd_below(&z->rnd, 4))
        slot.len = 0;
    if (slot.flags & LANDING_MORE && slot.len <= SIZE) { /* the next one is there, too */
        struct landing_slot next = {
            .len = nasty(&z->rnd, rnd_below(&z->rnd, 100)), .number = slot.number + 1, .seen = slot.seen};
        uint32_t at = landing_place(line + landing_lines(slot.len), LINES);
        memcpy(z->ring + (size_t)at * ST_LANDING_LINE, &next, sizeof next);
    }
    memcpy(z->ring + (size_t)line * ST_LANDING_LINE, &slot, sizeof slot);
    st_landing_notice(in, (uint32_t)NAME << LANDING_NAME_SHIFT | nasty(&z->rnd, line) % (1u << 28));
    if (line * ST_LANDING_LINE + ST_LANDING_HEAD + slot.len > SIZE || rnd_below(&z->rnd, 50) == 0)
        st_landing_notice(in, (uint32_t)NAME << LANDING_NAME_SHIFT); /* the second part of one that wraps */
}

static void use_ring(struct fuzzed_in *z)
{
    uint32_t n = z->n_held;
    if (n < 4) {
        int rc = st_landing_peek(&z->in, &z->held[n]);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN || rc == ST_LANDING_ENDED || rc == STRATA_ERR_PROTOCOL);
        if (rc == STRATA_OK) {
            read_all(&z->held[n], z->ring, SIZE);
            z->n_held++;
            z->messages++;
        }
    }
    if (z->n_held && rnd_below(&z->rnd, 2)) {
        (void)st_landing_release(&z->in, &z->held[0]);
        memmove(&z->held[0], &z->held[1], sizeof z->held - sizeof z->held[0]);
        z->n_held--;
    }
    CHECK(z->in.read - z->in.told <= LINES && z->in.released <= z->in.read && z->in.told <= z->in.released);
    CHECK(z->in.credits - z->in.acknowledged <= ST_LANDING_CREDITS);
    st_landing_return(&z->in);
}

START_TEST(receiver)
{
    struct fuzzed_in z = {.rnd.state = seeds[_i]};
    for (uint32_t i = rounds(100000), open = 0; i; i--) {
        if (!open) {
            z.ring = aligned_alloc(ST_LANDING_LINE, SIZE);
            CHECK(z.ring);
            for (uint32_t k = 0; k < SIZE; k++)
                z.ring[k] = (char)rnd_next(&z.rnd);
            CHECK_OK(st_landing_in_create(&z.in, z.ring, SIZE, NAME, tell, &z));
            z.n_held = 0;
            open = 1;
        }
        spoil_ring(&z);
        use_ring(&z);
        if (z.in.rc != STRATA_OK || z.in.ended || i == 1) {
            CHECK(z.in.rc == STRATA_OK || z.in.rc == STRATA_ERR_PROTOCOL);
            CHECK(z.in.rc == STRATA_OK || z.in.why);
            z.broken += z.in.rc != STRATA_OK;
            st_landing_in_destroy(&z.in);
            free(z.ring);
            open = 0;
        }
    }
    fprintf(stderr, "%u messages, %u credits, %u broken rings\n", z.messages, z.credits, z.broken);
    CHECK(z.messages > 100 && z.credits > 10 && z.broken > 100);
}
END_TEST

/* ---- the sender ---- */

struct fuzzed_out {
    struct st_landing_out out;
    struct rnd rnd;
    uint32_t pending; /* bit of each put under way */
    uint32_t messages, taken, broken;
};

static int put(void *arg, uint32_t which, uint32_t offset, uint32_t len, uint32_t notice)
{
    struct fuzzed_out *z = arg;
    CHECK(which < ST_LANDING_PUTS && !(z->pending >> which & 1) && notice < 1u << 28);
    CHECK(len > 0 && offset % ST_LANDING_LINE == 0 && offset + len <= SIZE);
    if (rnd_below(&z->rnd, 4) == 0)
        return STRATA_ERR_AGAIN;
    if (rnd_below(&z->rnd, 4) == 0)
        return 1;
    z->pending |= 1u << which;
    return STRATA_OK;
}

static void use_staging(struct fuzzed_out *z)
{
    struct st_landing_view v;
    uint32_t len = rnd_below(&z->rnd, rnd_below(&z->rnd, 4) ? 150 : SIZE), which = rnd_below(&z->rnd, ST_LANDING_PUTS);
    if (st_landing_reserve(&z->out, len, &v) == STRATA_OK) {
        in_bounds(&v, z->out.staging, SIZE);
        memset(v.first, 1, v.first_len);
        if (v.second_len)
            memset(v.second, 1, v.second_len);
        z->messages += st_landing_commit(&z->out, len, rnd_below(&z->rnd, 4) == 0) == STRATA_OK;
    }
    if (z->pending >> which & 1) {
        z->pending &= ~(1u << which);
        st_landing_put_done(&z->out, which, STRATA_OK);
    }
    CHECK(z->out.committed - z->out.released <= LINES && z->out.released <= z->out.sent);
    CHECK(z->out.sent <= z->out.committed && z->out.idle <= z->out.sent);
}

START_TEST(sender)
{
    struct fuzzed_out z = {.rnd.state = seeds[_i]};
    char *staging = NULL;
    for (uint32_t i = rounds(100000); i; i--) {
        if (!staging) {
            CHECK(staging = aligned_alloc(ST_LANDING_LINE, SIZE));
            CHECK_OK(st_landing_out_create(&z.out, staging, SIZE, NAME, put, &z));
            z.pending = 0;
        }
        use_staging(&z);
        if (rnd_below(&z.rnd, 4) == 0) {
            uint64_t most = z.out.sent - z.out.released, before = z.out.released;
            uint32_t place = (uint32_t)before + (most ? 1 + rnd_below(&z.rnd, (uint32_t)most) : 0);
            st_landing_credit(&z.out, nasty(&z.rnd, 1u << LANDING_KIND_SHIFT | (uint32_t)NAME << LANDING_NAME_SHIFT |
                                                        ((z.out.seen + 1) & 3) << LANDING_NUMBER_SHIFT |
                                                        (place & LANDING_PLACE_MASK)) %
                                          (1u << 28));
            z.taken += z.out.released != before;
        }
        if (z.out.rc != STRATA_OK || i == 1) {
            CHECK(z.out.rc == STRATA_OK || z.out.rc == STRATA_ERR_PROTOCOL);
            z.broken += z.out.rc != STRATA_OK;
            free(staging);
            staging = NULL;
        }
    }
    fprintf(stderr, "%u messages, %u credits, %u broken rings\n", z.messages, z.taken, z.broken);
    CHECK(z.messages > 100 && z.taken > 100 && z.broken > 100);
}
END_TEST

/* ---- between two ranks, which take turns, since nobody writes while an honest end reads ---- */

static struct {
    struct opening ring; /* what rank 0 has open */
    bool broken;         /* at rank 1 */
} table;

struct rubbish {
    struct st_notify n;
    bool under_way;
};

static void rubbish_done(struct st_notify *n, int rc)
{
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER); /* the ring has gone, and its key */
    ((struct rubbish *)n)->under_way = false;
}
static void rubbish_put(struct rings *u, struct rubbish *b, const struct st_notify_put *what)
{
    if (b->under_way)
        return;
    b->n.done = rubbish_done;
    b->under_way = true;
    if (st_worker_put_notify(u->w, where(u, 1 - u->r->rank, 0).peer, 0, what, &b->n) != STRATA_OK)
        b->under_way = false;
}

enum { FUZZ_RING = 4096, FUZZ_RINGS = 150 };

static void open_next(struct rings *u, uint32_t name)
{
    struct st_landing_where at = where(u, 1, 0);
    while (st_landing_receiver_open(&at, FUZZ_RING, name, &u->in[1][name], &table.ring.card) == STRATA_ERR_AGAIN)
        suite_spin(u->r->s, 1);
    table.broken = false;
}

struct turns {
    struct rings *u;
    struct rnd rnd;
    struct rubbish rubbish[8];
    char bytes[8][FUZZ_RING];
    struct st_btl_reg reg; /* of bytes */
    uint32_t name, messages, broken;
    bool open;
};

/* Rank 0: takes messages, gives rubbish as credit now and then, opens a fresh ring. */
static void receivers_turn(struct turns *t)
{
    struct rings *u = t->u;
    struct st_landing_view v;
    int rc;
    suite_spin(u->r->s, 2);
    while ((rc = st_landing_receiver_peek(u->in[1][t->name], &v)) == STRATA_OK) {
        in_bounds(&v, (const char *)(uintptr_t)table.ring.card.base, FUZZ_RING);
        read_all(&v, (const char *)(uintptr_t)table.ring.card.base, FUZZ_RING);
        t->messages++;
        (void)st_landing_receiver_release(u->in[1][t->name], &v);
    }
    if (rnd_below(&t->rnd, 20) == 0) {
        struct st_notify_put lie = {.am = ST_AM_TEST,
                                    .notice = nasty(&t->rnd, 1u << 27 | t->name << 17 | rnd_below(&t->rnd, 1 << 17)) %
                                              (1u << 28)};
        rubbish_put(u, &t->rubbish[rnd_below(&t->rnd, 8)], &lie);
    }
    if (rc == STRATA_ERR_AGAIN && !table.broken)
        return;
    t->broken++;
    close_in(u, 1, t->name);
    t->name = (t->name + 1) % FUZZ_RINGS;
    open_next(u, t->name);
}

/* Rank 1: sends, and puts rubbish where the ring lies. */
static void senders_turn(struct turns *t)
{
    struct rings *u = t->u;
    uint32_t name = table.ring.card.name;
    if (!t->open || name != t->name) {
        if (t->open)
            close_out(u, 0, t->name);
        CHECK_OK(open_out_by(u, 0, &table.ring));
        t->name = name;
        t->open = true;
    }
    struct st_landing_sender *out = u->out[0][name];
    struct st_landing_view v;
    uint32_t len = rnd_below(&t->rnd, rnd_below(&t->rnd, 5) ? 100 : FUZZ_RING), which = rnd_below(&t->rnd, 8);
    if (st_landing_sender_reserve(out, len, &v) == STRATA_OK) {
        memset(v.first, 1, v.first_len);
        if (v.second_len)
            memset(v.second, 1, v.second_len);
        (void)st_landing_sender_commit(out, len, rnd_below(&t->rnd, 4) == 0);
    }
    if (rnd_below(&t->rnd, 10) == 0 && !t->rubbish[which].under_way) {
        uint32_t line = rnd_below(&t->rnd, FUZZ_RING / 64), n = 1 + rnd_below(&t->rnd, FUZZ_RING - line * 64);
        for (uint32_t i = 0; i + 4 <= n; i += 4) {
            uint32_t word = nasty(&t->rnd, rnd_below(&t->rnd, 64));
            memcpy(t->bytes[which] + i, &word, 4);
        }
        struct st_notify_put lie = {.local = t->bytes[which],
                                    .remote = table.ring.card.base + line * 64,
                                    .key = table.ring.card.key,
                                    .reg = &t->reg,
                                    .len = rnd_below(&t->rnd, 4) ? n : 0,
                                    .am = ST_AM_TEST,
                                    .notice = nasty(&t->rnd, name << 17 | line) % (1u << 28)};
        rubbish_put(u, &t->rubbish[which], &lie);
    }
    suite_spin(u->r->s, 2);
    table.broken = st_landing_sender_out(out)->rc != STRATA_OK;
}

static void between_ranks(struct tw_rank *r)
{
    struct turns *t = calloc(1, sizeof *t);
    CHECK(t);
    t->u = join(r);
    t->rnd.state = *(const uint64_t *)r->arg + (uint64_t)r->rank * 1000;
    struct st_btl *btl = st_peer_path(where(t->u, 1 - r->rank, 0).peer, 0)->btl;
    while (btl->rdma->reg(btl, t->bytes, sizeof t->bytes, ST_BTL_SOURCE, &t->reg) == STRATA_ERR_AGAIN)
        ;
    if (r->rank == 0)
        open_next(t->u, 0);
    for (uint32_t i = rounds(4000); i; i--) {
        tw_barrier(r);
        if (r->rank == 1)
            senders_turn(t);
        tw_barrier(r);
        if (r->rank == 0)
            receivers_turn(t);
    }
    tw_barrier(r);
    if (r->rank == 1 && t->open)
        close_out(t->u, 0, t->name);
    tw_barrier(r);
    if (r->rank == 0)
        close_in(t->u, 1, t->name);
    for (uint32_t i = 0; i < 8; i++)
        while (t->rubbish[i].under_way)
            suite_spin(r->s, 1);
    btl->rdma->dereg(btl, &t->reg);
    tw_quiesce(r);
    if (r->rank == 0) {
        fprintf(stderr, "%u messages, %u broken rings\n", t->messages, t->broken);
        CHECK(t->messages > 10 && t->broken > 10);
    }
    leave(t->u);
    free(t);
}

START_TEST(ranks)
{
    uint64_t seed = seeds[_i];
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle,self btl_shuffle_needs_reg=1 mca_base_verbose=0",
                                .quiet = true},
           between_ranks, &seed);
}
END_TEST

int main(void)
{
    const char *only = getenv("STRATA_FUZZ_SEED");
    int n = SEEDS;
    if (only) {
        seeds[0] = strtoull(only, NULL, 0);
        n = 1;
    }
    Suite *s = suite_create("landing-fuzz");
    TCase *tc = tcase_create("fuzz");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, receiver, 0, n);
    tcase_add_loop_test(tc, sender, 0, n);
    tcase_add_loop_test(tc, ranks, 0, n);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
