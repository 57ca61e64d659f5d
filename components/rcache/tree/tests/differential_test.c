/* The cache beside a list that does the same naively: random gets, puts, invalidations and flushes of two clients, with
 * caps, a device that runs out of memory, and entries that stay in use. After each step the same is registered. */
/* one thread */
#include <check.h>
#include <string.h>
#include "support/fake_registrar.h"
#include "support/naive_rcache.h"
#include "support/random.h"
#include "support/world.h"
#include "cache.h"
#include "support/run_suite.h"

enum { PAGE = 4096, HELD = 64, STEPS = 100000 };

struct setting {
    uint64_t max_bytes, device_bytes;
    int64_t max_entries;
    uint32_t span, longest; /* pages: of the memory, of a buffer */
    uint32_t held;          /* entries in use at most */
};

struct run {
    const struct setting *set;
    struct rnd rnd;
    struct st_rcache *cache;
    struct naive_rcache *naive;
    struct fake_registrar f[2];
    struct st_rcache_entry *held[HELD];
    uint32_t n_held;
    uint64_t hits, misses;
};

static void random_range(struct run *r, uintptr_t *base, size_t *len)
{
    const uintptr_t start = (uintptr_t)1 << 30;
    *base = start + (uintptr_t)rnd_below(&r->rnd, r->set->span) * PAGE + rnd_below(&r->rnd, PAGE);
    *len = 1 + rnd_below(&r->rnd, r->set->longest * PAGE);
}

static void step_get(struct run *r)
{
    uintptr_t base;
    size_t len;
    random_range(r, &base, &len);
    int c = (int)rnd_below(&r->rnd, 2);
    /* Mostly the same access, as in life. */
    uint32_t access = rnd_below(&r->rnd, 8) ? ST_RCACHE_LOCAL_WRITE : rnd_below(&r->rnd, 16);
    uintptr_t from = base / PAGE * PAGE, to = (base + len + PAGE - 1) / PAGE * PAGE;
    bool hit = naive_rcache_hit(r->naive, c, from, to, access);
    bool possible = hit || naive_rcache_room(r->naive, from, to);
    struct st_rcache_entry *e = NULL;
    int rc = r->cache->ops->get(r->cache, &r->f[c].client, (void *)base, len, access, &e);
    r->hits += hit;
    r->misses += !hit;
    ck_assert_int_eq(rc, possible ? STRATA_OK : STRATA_ERR_NOMEM);
    if (rc != STRATA_OK) {
        ck_assert_ptr_null(e);
        return;
    }
    fake_registration(&r->f[c], e);
    if (hit) {
        ck_assert(naive_rcache_use(r->naive, e->handle, c, from, to, access));
    } else {
        ck_assert(e->from == from && e->to == to && e->access == access && e->refs == 1);
        naive_rcache_add(r->naive, c, from, to, access, e->handle);
    }
    r->held[r->n_held++] = e;
}

static void step_put(struct run *r)
{
    uint32_t i = rnd_below(&r->rnd, r->n_held);
    struct st_rcache_entry *e = r->held[i];
    r->held[i] = r->held[--r->n_held];
    fake_registration(ST_CONTAINER(e->client, struct fake_registrar, client), e);
    naive_rcache_put(r->naive, e->handle);
    r->cache->ops->put(r->cache, e);
}

static void step_invalidate(struct run *r)
{
    uintptr_t base;
    size_t len;
    random_range(r, &base, &len);
    if (rnd_below(&r->rnd, 50) == 0)
        len *= 16;
    naive_rcache_invalidate(r->naive, base, base + len);
    r->cache->ops->invalidate(r->cache, base, base + len);
    if (rnd_below(&r->rnd, 2))
        r->cache->ops->apply(r->cache);
}

/* Both know the same number, and each registration of the devices is one that the list has. */
static void compare(struct run *r, bool all)
{
    struct st_rcache_counters n;
    r->cache->ops->apply(r->cache);
    r->cache->ops->counters(r->cache, &n);
    ck_assert_uint_eq(n.entries, naive_rcache_entries(r->naive));
    ck_assert_uint_eq(n.bytes, naive_rcache_bytes(r->naive));
    ck_assert_uint_eq(n.entries, r->f[0].n + r->f[1].n);
    ck_assert_uint_eq(n.bytes, r->f[0].bytes + r->f[1].bytes);
    ck_assert_uint_eq(n.hits, r->hits);
    ck_assert_uint_eq(n.misses, r->misses);
    for (int c = 0; c < 2 && all; c++)
        for (struct fake_registration *x = r->f[c].all.next; x != &r->f[c].all; x = x->next)
            ck_assert(naive_rcache_has(r->naive, x));
}

static void step(struct run *r)
{
    uint32_t what = rnd_below(&r->rnd, 1000);
    if (what < 430 && r->n_held < r->set->held)
        step_get(r);
    else if (what < 880 && r->n_held)
        step_put(r);
    else if (what < 998)
        step_invalidate(r);
    else if (what == 998)
        ck_assert_uint_eq(r->cache->ops->flush(r->cache), naive_rcache_flush(r->naive));
}

static const struct setting settings[] = {
    {1u << 30, 1u << 30, 1000000, 2000, 8, 8},    /* no cap is reached */
    {1u << 30, 1u << 30, 50, 2000, 8, 20},        /* the count is, now and then by entries in use alone */
    {200 * PAGE, 1u << 30, 1000000, 500, 20, 20}, /* the bytes are */
    {1u << 30, 150 * PAGE, 1000000, 500, 20, 30}, /* the device runs out */
    {120 * PAGE, 100 * PAGE, 30, 100, 100, HELD}, /* everything at once, much overlap */
    {1u << 30, 1u << 30, 1000000, 100000, 2, 8},  /* many small ones, little overlap: a deep tree */
};

START_TEST(does_as_the_list_does)
{
    struct run r = {.set = &settings[_i], .rnd = {1000 + (uint64_t)_i}};
    struct cache_config config = {.max_bytes = r.set->max_bytes, .max_entries = r.set->max_entries};
    ck_assert_int_eq(cache_make(NULL, &config, &r.cache), STRATA_OK);
    r.naive = naive_rcache_create(r.set->max_bytes, (uint64_t)r.set->max_entries, r.set->device_bytes);
    fake_registrar_start(&r.f[0], r.cache, "one");
    fake_registrar_start(&r.f[1], r.cache, "two");
    r.f[0].beside = &r.f[1];
    r.f[1].beside = &r.f[0];
    r.f[0].max_bytes = r.f[1].max_bytes = r.set->device_bytes;
    int steps = test_sanitized() ? STEPS / 5 : STEPS;
    for (int i = 0; i < steps; i++) {
        step(&r);
        if (i % 16 == 0)
            compare(&r, i % 1024 == 0);
    }
    ck_assert_uint_gt(r.hits, 0);
    ck_assert_uint_gt(r.misses, 0);
    struct st_rcache_counters n;
    r.cache->ops->counters(r.cache, &n);
    ck_assert_uint_gt(n.invalidations, 0);
    ck_assert(_i == 0 || _i == 5 || n.evictions > 0);
    ck_assert(r.set->device_bytes >= 1u << 30 || r.f[0].refused > 0);
    naive_rcache_destroy(r.naive);
    /* Some are in use still: detaching undoes them. */
    fake_registrar_stop(&r.f[0], r.cache);
    fake_registrar_stop(&r.f[1], r.cache);
    r.cache->ops->counters(r.cache, &n);
    ck_assert_uint_eq(n.entries, 0);
    ck_assert_uint_eq(n.bytes, 0);
    r.cache->ops->close(r.cache);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rcache_tree differential");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, does_as_the_list_does, 0, sizeof(settings) / sizeof(settings[0]));
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
