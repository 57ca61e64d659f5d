/* What a peer sends is not trusted: headers and payloads of real traffic are mutated, cut, repeated and made up, and
 * handed to the PML and the worker of both ranks while requests of every kind are under way. Messages may be lost or
 * wrong; nothing may crash, read or write outside a buffer, or leak (the sanitizers watch), and once the peers are
 * declared dead all requests end.
 *
 * The number that Check names with a failure is the place of the settings times ten plus the place of the seed.
 * STRATA_FUZZ_SEED=N runs one seed, STRATA_FUZZ_ROUNDS=N changes how many fragments are made up. */
#include <check.h>
#include "support/suite.h"
#include "framework/base/context.h"
#include "support/run_suite.h"

enum { CORPUS = 400, REQUESTS = 40, MAX_PAYLOAD = 4096 };

struct sample {
    enum st_am am;
    uint32_t hdr_len, len;
    unsigned char hdr[ST_BTL_HDR_MAX], data[MAX_PAYLOAD];
};

struct hooked {
    struct fuzz *z;
    enum st_am am;
    st_deliver_fn fn; /* its own */
    void *arg;
};

struct fuzz {
    struct tw_rank *r;
    struct hooked hooked[2]; /* the PML, the worker's lanes */
    struct rnd rnd;
    struct sample *corpus;
    uint32_t n_corpus, seen;
    bool corrupt; /* what arrives is mutated on the way, too */
    strata_request_t *q[REQUESTS];
    char *b[REQUESTS];
};

static const uint64_t seeds[] = {1, 2, 3, 5, 8, 13, 21, 34, 1234567, 0xdeadbeef};
static const char *const settings[] = {
    "btl=shuffle,self btl_shuffle_get=0 btl_shuffle_put=0 mca_base_verbose=0",
    "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_put=0 mca_base_verbose=0",
    "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_get=0 btl_shuffle_rails=2 mca_base_verbose=0",
};
enum { SEEDS = sizeof seeds / sizeof seeds[0], WAYS = sizeof settings / sizeof settings[0] };

/* Values that lengths, offsets, indices and sequence numbers dislike. */
static uint64_t nasty(struct rnd *rnd)
{
    static const uint64_t list[] = {0,
                                    1,
                                    2,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x10000,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    0x7fffffffffffffff,
                                    0xffffffffffffffff,
                                    0xfffffffffffffff8};
    return list[rnd_below(rnd, sizeof list / sizeof list[0])] + (rnd_below(rnd, 4) ? 0 : rnd_below(rnd, 16) - 8);
}

static void mutate(struct rnd *rnd, unsigned char *p, uint32_t n)
{
    if (!n)
        return;
    for (uint32_t i = 1 + rnd_below(rnd, 3); i; i--) {
        uint64_t v = nasty(rnd);
        uint32_t width = 1u << rnd_below(rnd, 4), at = rnd_below(rnd, n) / width * width;
        switch (rnd_below(rnd, 4)) {
        case 0:
            p[rnd_below(rnd, n)] ^= (unsigned char)(1u << rnd_below(rnd, 8));
            break;
        case 1:
            p[rnd_below(rnd, n)] = (unsigned char)rnd_next(rnd);
            break;
        default:
            if (at + width <= n)
                memcpy(p + at, &v, width);
            break;
        }
    }
}

/* Sees what arrives, keeps samples, and in the second phase spoils some of it in place. */
static void hook(void *arg, const struct st_frag *f)
{
    struct hooked *h = arg;
    struct fuzz *z = h->z;
    struct st_frag g = *f;
    if (f->hdr_len <= ST_BTL_HDR_MAX && f->len <= MAX_PAYLOAD && !z->corrupt) {
        uint32_t at = z->n_corpus < CORPUS ? z->n_corpus++ : rnd_below(&z->rnd, ++z->seen);
        if (at < CORPUS) {
            struct sample *s = &z->corpus[at];
            s->am = h->am;
            s->hdr_len = f->hdr_len;
            s->len = f->len;
            memcpy(s->hdr, f->hdr, f->hdr_len);
            if (f->len)
                memcpy(s->data, f->data, f->len);
        }
    }
    if (z->corrupt && rnd_below(&z->rnd, 8) == 0) {
        mutate(&z->rnd, (unsigned char *)(uintptr_t)f->hdr, f->hdr_len);
        if (rnd_below(&z->rnd, 4) == 0)
            g.len = rnd_below(&z->rnd, f->len + 1);
        if (rnd_below(&z->rnd, 8) == 0)
            g.hdr_len = rnd_below(&z->rnd, f->hdr_len + 1);
    }
    return h->fn(h->arg, &g);
}

/* Hands the PML, or the worker, one fragment that nobody sent. Its bytes lie at the end of their own blocks, so that a
 * sanitizer sees every read beyond them. */
static void make_up(struct fuzz *z)
{
    struct st_btl *btl = NULL;
    for (size_t i = 0; i < z->r->s->n_btls; i++)
        if (!strcmp(z->r->s->btls[i]->component->name, "shuffle"))
            btl = z->r->s->btls[i];
    const struct sample *s = &z->corpus[rnd_below(&z->rnd, z->n_corpus)];
    uint32_t hdr_len = s->hdr_len, len = s->len;
    if (rnd_below(&z->rnd, 8) == 0)
        hdr_len = rnd_below(&z->rnd, ST_BTL_HDR_MAX + 1);
    if (rnd_below(&z->rnd, 6) == 0)
        len = rnd_below(&z->rnd, MAX_PAYLOAD);
    unsigned char *hdr = calloc(1, hdr_len ? hdr_len : 1), *data = calloc(1, len ? len : 1);
    CHECK(btl && hdr && data);
    memcpy(hdr, s->hdr, hdr_len < s->hdr_len ? hdr_len : s->hdr_len);
    memcpy(data, s->data, len < s->len ? len : s->len);
    if (rnd_below(&z->rnd, 8))
        mutate(&z->rnd, hdr, hdr_len);
    else if (rnd_below(&z->rnd, 4) == 0)
        for (uint32_t i = 0; i < hdr_len; i++)
            hdr[i] = (unsigned char)rnd_next(&z->rnd);
    struct st_frag f = {.hdr = hdr, .data = data, .hdr_len = hdr_len, .len = len, .rank = 1 - z->r->rank, .btl = btl};
    const struct hooked *h = &z->hooked[s->am == ST_AM_LANE];
    h->fn(h->arg, &f);
    free(hdr);
    free(data);
}

/* Starts something in a free place; forgets what is complete. */
static void start_one(struct fuzz *z, size_t longest)
{
    uint32_t i = rnd_below(&z->rnd, REQUESTS), kind = rnd_below(&z->rnd, 4);
    int peer = 1 - z->r->rank, done = 1, tag = (int)rnd_below(&z->rnd, 4);
    size_t len = rnd_below(&z->rnd, 3) ? rnd_below(&z->rnd, 2000) : longest;
    strata_comm_t *c = z->r->comm;
    if (z->q[i]) {
        strata_test(&z->q[i], &done, NULL);
        if (!done)
            return;
    }
    if (kind < 2)
        CHECK_OK(
            strata_irecv(c, z->b[i], len, kind ? STRATA_ANY_SOURCE : peer, rnd_below(&z->rnd, 2) ? tag : -1, &z->q[i]));
    else
        CHECK_OK(
            strata_isend_mode(c, z->b[i], len, peer, tag, kind == 2 ? STRATA_SYNCHRONOUS : STRATA_STANDARD, &z->q[i]));
}

/* Honest traffic of every kind, to sample. */
static void honest(struct fuzz *z, size_t longest)
{
    size_t size[80], n = suite_sizes(z->r->s, longest, size, 78);
    size[n++] = longest;
    for (size_t i = 0; i < n; i++)
        for (int mode = 0; mode < 3; mode += 2) {
            strata_request_t *q[2];
            CHECK_OK(strata_irecv(z->r->comm, z->b[0], longest, 1 - z->r->rank, 1, &q[0]));
            CHECK_OK(strata_isend_mode(z->r->comm, z->b[1], size[i], 1 - z->r->rank, 1, (strata_mode_t)mode, &q[1]));
            CHECK_OK(strata_waitall(2, q, NULL));
        }
}

static void end_all(struct fuzz *z)
{
    int peer = 1 - z->r->rank;
    CHECK_OK(strata_host_peer_failed(z->r->s, peer, "the fuzzing is over"));
    suite_spin(z->r->s, 100);
    for (int i = 0; i < REQUESTS; i++) {
        int done = 0;
        if (z->q[i])
            strata_cancel(z->q[i]); /* receives from anybody stay posted; for sends it is refused */
        while (!done) {
            strata_test(&z->q[i], &done, NULL);
            suite_spin(z->r->s, 1);
        }
    }
}

static void body(struct tw_rank *r)
{
    const char *rounds = getenv("STRATA_FUZZ_ROUNDS");
    int n = rounds ? atoi(rounds) : test_sanitized() ? 3000 : 20000;
    size_t longest = 50000;
    struct fuzz *z = calloc(1, sizeof *z);
    CHECK(z && (z->corpus = calloc(CORPUS, sizeof *z->corpus)));
    z->r = r;
    z->rnd.state = *(uint64_t *)r->arg * 2 + (uint64_t)r->rank;
    for (int i = 0; i < REQUESTS; i++)
        CHECK(z->b[i] = calloc(1, longest));
    for (size_t i = 0; i < r->s->n_btls; i++) {
        struct st_btl *t = r->s->btls[i];
        if (strcmp(t->component->name, "shuffle") != 0)
            continue;
        for (int k = 0; k < 2; k++) {
            enum st_am am = k ? ST_AM_LANE : ST_AM_PML;
            if (t->am[am].fn != hook)
                z->hooked[k] = (struct hooked){z, am, t->am[am].fn, t->am[am].arg};
            t->am[am].fn = hook;
            t->am[am].arg = &z->hooked[k];
        }
    }
    tw_barrier(r);
    honest(z, longest);
    tw_quiesce(r);
    CHECK(z->n_corpus > 20);
    z->corrupt = true;
    for (int i = 0; i < n; i++) {
        if (rnd_below(&z->rnd, 3) == 0)
            start_one(z, longest);
        if (rnd_below(&z->rnd, 2) == 0)
            make_up(z);
        if (rnd_below(&z->rnd, 4) == 0)
            strata_progress(r->s);
    }
    tw_quiesce(r);
    end_all(z);
    tw_quiesce(r);
    CHECK_OK(strata_finalize(r->s));
    for (int i = 0; i < REQUESTS; i++)
        free(z->b[i]);
    free(z->corpus);
    free(z);
}

START_TEST(fuzz)
{
    const char *only = getenv("STRATA_FUZZ_SEED");
    uint64_t seed = only ? strtoull(only, NULL, 0) : seeds[_i % SEEDS];
    if (only && _i % SEEDS)
        return;
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i / SEEDS], .quiet = true, .no_finalize = true}, body,
           &seed);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire-fuzz");
    TCase *tc = tcase_create("fuzz");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, fuzz, 0, SEEDS * WAYS);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
