/* A device's library as on kernels before 5.12: registered pages are taken out of children (MADV_DONTFORK). A child may
 * touch the pages of a buffer that was sent before, whichever thread forks. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kept.h"
#include "support/run_suite.h"

static int made, undone;

static int make(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    size_t *n = malloc(2 * sizeof(*n));
    (void)client, (void)access;
    CHECK(n && madvise(base, len, MADV_DONTFORK) == 0);
    n[0] = (size_t)base;
    n[1] = len;
    *handle = n;
    made++;
    return STRATA_OK;
}

static void unmake(struct st_rcache_client *client, void *handle)
{
    const size_t *n = handle;
    (void)client;
    CHECK(madvise((void *)n[0], n[1], MADV_DOFORK) == 0);
    free(handle);
    undone++;
}

static struct st_rcache_client device = {.name = "old", .make = make, .unmake = unmake};
static char *page;

/* The child's status. */
static void *child_writes(void *arg)
{
    int *status = arg;
    pid_t child = fork();
    if (child == 0) {
        page[0]++;
        _exit(page[0] == 8 ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, status, 0) == child);
    return NULL;
}

static struct st_rcache_entry *use(void)
{
    struct st_rcache_entry *e;
    CHECK_OK(kept.cache->ops->get(kept.cache, &device, page, PAGE, 0, &e));
    return e;
}

static void try_fork(strata_thread_level_t level)
{
    struct st_rcache_entry *e;
    pthread_t t;
    int status = -1;
    kept_begin_at("memory=intercept rcache=tree btl=self", level);
    CHECK_OK(kept.cache->ops->attach(kept.cache, &device));
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 7;
    kept.cache->ops->put(kept.cache, use());
    kept.cache->ops->put(kept.cache, use());
    CHECK_EQ(made, 1);
    CHECK_EQ(undone, 0);
    child_writes(&status);
    CHECK_EQ(status, 0);
    CHECK_EQ(undone, 1);
    CHECK_EQ(page[0], 7);
    kept.cache->ops->put(kept.cache, use());
    CHECK_EQ(made, 2);
    CHECK_EQ(pthread_create(&t, NULL, child_writes, &status), 0);
    pthread_join(t, NULL);
    CHECK_EQ(status, 0);
    CHECK_EQ(undone, 2);
    /* One in use is the device's still, and goes afterwards. */
    e = use();
    child_writes(&status);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK_EQ(undone, 2);
    kept.cache->ops->put(kept.cache, e);
    CHECK_EQ(undone, 3);
    kept.cache->ops->detach(kept.cache, &device);
    kept_end();
}

START_TEST(one_thread_at_a_time)
{
    try_fork(STRATA_THREAD_SINGLE);
}
END_TEST

START_TEST(many_threads)
{
    try_fork(STRATA_THREAD_MULTIPLE);
}
END_TEST

int main(void)
{
    if (test_sanitized()) {
        printf("SKIP: a sanitizer's malloc makes system calls of its own\n");
        return 77;
    }
    Suite *suite = suite_create("memory_intercept and fork");
    TCase *t = tcase_create("all");
    tcase_add_test(t, one_thread_at_a_time);
    tcase_add_test(t, many_threads);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
