/* Memory goes away in several threads while one sends from it. A region's lock is held by whoever uses the region, as a
 * program must not free what it is sending; nothing orders the threads of different regions, nor their ranges in the
 * mailbox. A registration remembers the generation its memory had when it was made: one that is handed out must be as
 * new as the memory is. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support/fake_registrar.h"
#include "support/random.h"
#include "support/world.h"
#include "tree.h"

enum { PAGE = 4096, REGIONS = 64, PAGES = 8, THREADS = 4, HELD = 16 };

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
    struct tree_config config = {.max_bytes = (size_t)REGIONS / 2 * PAGES * PAGE, .max_entries = 1000};
    CHECK_OK(tree_make(NULL, &config, &run.cache));
    fake_registrar_start(&f, run.cache, "fake");
    for (int i = 0; i < REGIONS; i++)
        pthread_mutex_init(&run.region[i].lock, NULL);
    for (int i = 0; i < THREADS; i++) {
        freer[i] = (struct freer){.run = &run, .seed = (uint64_t)i};
        CHECK(pthread_create(&freer[i].thread, NULL, free_memory, &freer[i]) == 0);
    }
    int steps = test_sanitized() ? 20000 : 200000;
    struct st_rcache_counters n = {0};
    /* On one processor the others may not have run yet. */
    for (int i = 0; i < steps || (n.invalidations < 1000 && i < 100 * steps); i++) {
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

int main(void)
{
    Suite *suite = suite_create("rcache_tree threads");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, test_timeout(60));
    tcase_add_test(t, no_stale_registration_is_handed_out);
    suite_add_tcase(suite, t);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
