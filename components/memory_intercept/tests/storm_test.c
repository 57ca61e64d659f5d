/* Eight threads that allocate, free and map: while the code is changed under them, and while a ninth registers what it
 * allocates and gives it back. A registration that is handed out must be of the memory as it is now. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kept.h"
#include "support/form.h"
#include "support/random.h"
#include "support/run_suite.h"

enum { THREADS = 8, SHORT = 3000, FULL = 10000, STORMS = 8, STORMS_FULL = 20 };

static _Atomic(int) stop;
static _Atomic(uint64_t) rounds;

static void *allocate_and_free(void *arg)
{
    struct rnd r = {(uintptr_t)arg};
    void *held[32] = {NULL};
    while (!stop) {
        uint32_t i = rnd_below(&r, 32);
        free(held[i]);
        size_t n = rnd_below(&r, 8) ? 16 + rnd_below(&r, 5000) : (128u << 10) + rnd_below(&r, 1 << 20);
        CHECK((held[i] = malloc(n)));
        memset(held[i], 1, n < PAGE ? n : PAGE);
        if (rnd_below(&r, 16) == 0) {
            char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(at != MAP_FAILED);
            at[0] = 1;
            CHECK(madvise(at, PAGE, MADV_DONTNEED) == 0 && at[0] == 0);
            CHECK((at = mremap(at, 4 * PAGE, 2 * PAGE, 0)) != MAP_FAILED);
            CHECK(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
            CHECK(munmap(at, 2 * PAGE) == 0);
        }
        rounds++;
    }
    for (int i = 0; i < 32; i++)
        free(held[i]);
    return NULL;
}

static void begin_storm(pthread_t *t)
{
    stop = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, allocate_and_free, (void *)(i + 1)) == 0);
    while (rounds < 1000)
        usleep(1000);
}

static void end_storm(pthread_t *t)
{
    stop = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

/* Each is a process of its own: the code is changed once in each. */
START_TEST(code_is_changed_under_a_storm)
{
    pthread_t t[THREADS];
    begin_storm(t);
    kept_begin("memory=intercept rcache=tree");
    uint64_t then = rounds;
    while (rounds < then + 1000)
        usleep(1000);
    end_storm(t);
    kept_end();
}
END_TEST

/* The one who registers gets, from malloc and mmap, addresses that the others have given back. A registration remembers
 * how many times this thread has been given its memory. */
START_TEST(registrations_in_a_storm)
{
    pthread_t t[THREADS];
    struct rnd r = {99};
    kept_begin("memory=intercept rcache=tree rcache_tree_max_entries=64");
    begin_storm(t);
    int steps = (int)test_quick_form(SHORT, FULL);
    struct st_rcache_counters n;
    for (int i = 0; i < steps; i++) {
        struct st_rcache_entry *e;
        size_t bytes = (1 + rnd_below(&r, 64)) * PAGE;
        char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(at != MAP_FAILED);
        kept.device.clock = (uint64_t)i;
        for (int k = 0; k < 3; k++) {
            CHECK_OK(kept.cache->ops->get(kept.cache, &kept.device.client, at, bytes, 0, &e));
            CHECK_MSG(fake_registration(&kept.device, e)->made_at == (uint64_t)i, "step %d: registered at step %d", i,
                      (int)fake_registration(&kept.device, e)->made_at);
            kept.cache->ops->put(kept.cache, e);
        }
        CHECK(munmap(at, bytes) == 0);
    }
    end_storm(t);
    kept.cache->ops->counters(kept.cache, &n);
    printf("%llu hits, %llu misses, %llu ranges, %llu invalidations, %llu overflows, %llu rounds of the others\n",
           (unsigned long long)n.hits, (unsigned long long)n.misses, (unsigned long long)n.ranges,
           (unsigned long long)n.invalidations, (unsigned long long)n.overflows, (unsigned long long)rounds);
    CHECK(n.hits > 0 && n.invalidations > 0);
    kept_end();
}
END_TEST

int main(void)
{
    if (test_sanitized()) {
        printf("SKIP: a sanitizer's malloc makes system calls of its own\n");
        return 77;
    }
    test_form_print(99, test_quick_form(SHORT, FULL), FULL, "steps");
    Suite *suite = suite_create("memory_intercept in a storm");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, code_is_changed_under_a_storm, 0, (int)test_quick_form(STORMS, STORMS_FULL));
    tcase_add_test(t, registrations_in_a_storm);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
