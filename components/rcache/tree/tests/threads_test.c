/* Memory goes away in several threads while one sends from it. A region's lock is held by whoever uses the region, as a
 * program must not free what it is sending; nothing orders the threads of different regions, nor their ranges in the
 * mailbox. A registration remembers the generation its memory had when it was made: one that is handed out must be as
 * new as the memory is. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support/fake_registrar.h"
#include "support/let_run.h"
#include "support/random.h"
#include "support/world.h"
#include "cache.h"
#include "support/run_suite.h"

enum { PAGE = 65536, REGIONS = 64, PAGES = 8, THREADS = 4, HELD = 16 };

struct region {
    pthread_mutex_t lock;
    uint64_t generation; /* of what is mapped there; under lock */
};

struct run {
    struct st_rcache *cache;
    struct region region[REGIONS];
    _Atomic(int) stop;
    _Atomic(uint64_t) freed;
};

struct freer {
    struct run *run;
    pthread_t thread;
    uint64_t seed;
};

static uintptr_t start_of(uint32_t region)
{
    return ((uintptr_t)1 << 30) + (uintptr_t)region * PAGES * PAGE;
}

static void *free_memory(void *arg)
{
    struct freer *me = arg;
    struct rnd rnd = {me->seed};
    while (!atomic_load_explicit(&me->run->stop, memory_order_relaxed)) {
        uint32_t i = rnd_below(&rnd, REGIONS);
        uintptr_t from = start_of(i) + (uintptr_t)rnd_below(&rnd, PAGES) * PAGE;
        struct region *r = &me->run->region[i];
        pthread_mutex_lock(&r->lock);
        me->run->cache->ops->invalidate(me->run->cache, from, from + PAGE);
        r->generation++; /* unmapped, and mapped anew, whole as it is: a page tells */
        pthread_mutex_unlock(&r->lock);
        atomic_fetch_add_explicit(&me->run->freed, 1, memory_order_relaxed);
        for (uint32_t k = rnd_below(&rnd, 400); k; k--)
            __asm__ volatile("" ::: "memory");
    }
    return NULL;
}

/* One message from the whole region: what get hands out must know what is mapped now. */
static struct st_rcache_entry *send_from(struct run *run, struct fake_registrar *f, uint32_t i)
{
    struct st_rcache_entry *e;
    struct region *r = &run->region[i];
    pthread_mutex_lock(&r->lock);
    f->clock = r->generation;
    CHECK_OK(run->cache->ops->get(run->cache, &f->client, (void *)start_of(i), PAGES * PAGE, 0, &e));
    CHECK_MSG(fake_registration(f, e)->made_at == r->generation, "stale: made at %llu, memory is of %llu",
              (unsigned long long)fake_registration(f, e)->made_at, (unsigned long long)r->generation);
    pthread_mutex_unlock(&r->lock);
    return e;
}

START_TEST(no_stale_registration_is_handed_out)
{
    static struct run run;
    static struct fake_registrar f;
    struct freer freer[THREADS];
    struct st_rcache_entry *held[HELD] = {NULL};
    struct rnd rnd = {7};
    struct cache_config config = {.max_bytes = (size_t)REGIONS / 2 * PAGES * PAGE, .max_entries = 1000};
    CHECK_OK(cache_make(NULL, &config, &run.cache));
    fake_registrar_start(&f, run.cache, "fake");
    for (int i = 0; i < REGIONS; i++)
        pthread_mutex_init(&run.region[i].lock, NULL);
    for (int i = 0; i < THREADS; i++) {
        freer[i] = (struct freer){.run = &run, .seed = (uint64_t)i};
        CHECK(pthread_create(&freer[i].thread, NULL, free_memory, &freer[i]) == 0);
    }
    int steps = test_sanitized() ? 20000 : 200000;
    struct st_rcache_counters n = {0};
    for (int i = 0; i < steps || n.invalidations < 1000; i++) {
        if (i >= steps)
            let_run(); /* the others have not had enough of the processor yet */
        uint32_t k = rnd_below(&rnd, HELD);
        if (held[k])
            run.cache->ops->put(run.cache, held[k]);
        held[k] = send_from(&run, &f, rnd_below(&rnd, REGIONS));
        run.cache->ops->counters(run.cache, &n);
    }
    atomic_store(&run.stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(freer[i].thread, NULL);
    for (int k = 0; k < HELD; k++)
        if (held[k])
            run.cache->ops->put(run.cache, held[k]);
    run.cache->ops->counters(run.cache, &n);
    ck_assert_uint_gt(n.hits, 0);
    ck_assert_uint_ge(n.invalidations, 1000);
    printf("%llu hits, %llu misses, %llu freed, %llu ranges, %llu invalidations, %llu overflows\n",
           (unsigned long long)n.hits, (unsigned long long)n.misses, (unsigned long long)run.freed,
           (unsigned long long)n.ranges, (unsigned long long)n.invalidations, (unsigned long long)n.overflows);
    fake_registrar_stop(&f, run.cache);
    run.cache->ops->close(run.cache);
}
END_TEST

struct forker {
    struct st_rcache *cache;
    _Atomic(int) stop;
    _Atomic(uint64_t) rounds;
};

static void *fork_again_and_again(void *arg)
{
    struct forker *me = arg;
    while (!atomic_load(&me->stop)) {
        me->cache->ops->before_fork(me->cache);
        atomic_fetch_add(&me->rounds, 1);
    }
    return NULL;
}

/* Forks by another thread, which waits for nobody, undo what is idle between any two steps, and nothing that is used.
 */
START_TEST(forks_by_another_thread)
{
    static struct fake_registrar f;
    struct forker forker = {.stop = 0};
    struct st_rcache_entry *held[HELD] = {NULL};
    struct st_rcache_counters n = {0};
    struct rnd rnd = {8};
    pthread_t thread;
    struct cache_config config = {.max_bytes = 0, .max_entries = 20};
    CHECK_OK(cache_make(NULL, &config, &forker.cache));
    fake_registrar_start(&f, forker.cache, "fake");
    CHECK(pthread_create(&thread, NULL, fork_again_and_again, &forker) == 0);
    int steps = test_sanitized() ? 20000 : 100000;
    for (int i = 0; i < steps || n.invalidations < 100; i++) {
        if (i >= steps)
            let_run();
        uint32_t k = rnd_below(&rnd, HELD);
        if (held[k]) {
            CHECK(held[k]->refs > 0 && held[k]->client == &f.client);
            forker.cache->ops->put(forker.cache, held[k]);
            held[k] = NULL;
        } else {
            void *at = (void *)start_of(rnd_below(&rnd, REGIONS));
            CHECK_OK(forker.cache->ops->get(forker.cache, &f.client, at, PAGE, 0, &held[k]));
        }
        if (i % 16 == 0)
            forker.cache->ops->invalidate(forker.cache, start_of(rnd_below(&rnd, REGIONS)), start_of(REGIONS));
        forker.cache->ops->counters(forker.cache, &n);
    }
    for (int k = 0; k < HELD; k++)
        if (held[k])
            forker.cache->ops->put(forker.cache, held[k]);
    atomic_store(&forker.stop, 1);
    pthread_join(thread, NULL);
    forker.cache->ops->before_fork(forker.cache);
    CHECK_EQ(f.n, 0);
    ck_assert_uint_ge(n.invalidations, 100);
    fake_registrar_stop(&f, forker.cache);
    forker.cache->ops->close(forker.cache);
}
END_TEST

/* In the middle of an op, by the same thread, as a signal handler may: nothing happens, and nothing hangs. */
static struct st_rcache *in_use;
static int (*real_make)(struct st_rcache_client *, void *, size_t, uint32_t *, void **);

static int make_and_fork(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    int rc = real_make(client, base, len, access, handle);
    in_use->ops->before_fork(in_use);
    return rc;
}

START_TEST(a_fork_in_the_middle)
{
    struct fake_registrar f;
    struct st_rcache_entry *a, *b;
    struct cache_config config = {.max_bytes = 0, .max_entries = 20};
    CHECK_OK(cache_make(NULL, &config, &in_use));
    fake_registrar_start(&f, in_use, "fake");
    CHECK_OK(in_use->ops->get(in_use, &f.client, (void *)start_of(0), PAGE, 0, &a));
    in_use->ops->put(in_use, a);
    real_make = f.client.make;
    f.client.make = make_and_fork;
    CHECK_OK(in_use->ops->get(in_use, &f.client, (void *)start_of(1), PAGE, 0, &b));
    CHECK_EQ(f.n, 2);
    in_use->ops->before_fork(in_use);
    CHECK_EQ(f.n, 1);
    in_use->ops->put(in_use, b);
    in_use->ops->before_fork(in_use);
    CHECK_EQ(f.n, 0);
    fake_registrar_stop(&f, in_use);
    in_use->ops->close(in_use);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rcache_tree threads");
    TCase *t = tcase_create("all");
    tcase_add_test(t, no_stale_registration_is_handed_out);
    tcase_add_test(t, forks_by_another_thread);
    tcase_add_test(t, a_fork_in_the_middle);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
