/* 20,000 random steps in two threads with a device that pins: nothing stale; and what is watched is kept. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/memory_steps.h"
#include "support/run_suite.h"

#define BY_NAME "memory=userfaultfd rcache=tree rcache_tree_max_entries=100"

/* False: this machine does not allow it; the reason has been printed. */
static bool allowed(void)
{
    struct tw_options o = {.n = 1, .settings = BY_NAME, .quiet = true};
    struct tw_world *world = tw_create(&o);
    strata_t *s;
    char err[1024] = "";
    bool good = tw_init(world, 0, &s, err, sizeof(err)) == STRATA_OK;
    if (good)
        CHECK_OK(strata_finalize(s));
    /* What may keep it from starting; to fail its self-test is a fault. */
    CHECK_MSG(good || strstr(err, "userfaultfd is not allowed") || strstr(err, "this kernel"), "%s", err);
    if (!good)
        printf("SKIP: %s\n", err);
    tw_destroy(world);
    return good;
}

START_TEST(nothing_stale)
{
    struct result r = run_walkers(BY_NAME, 20000, 2);
    CHECK(r.stale == 0 && r.sent > 5000 && r.hits > r.sent / 20 && r.invalidations > 500);
    r = run_walkers(BY_NAME, 4000, 1);
    CHECK(r.stale == 0);
}
END_TEST

static int made;

static int make(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    (void)client, (void)len, (void)access;
    made++;
    *handle = base;
    return STRATA_OK;
}
static void unmake(struct st_rcache_client *client, void *handle)
{
    (void)client, (void)handle;
}

static bool was_kept(struct st_rcache *cache, struct st_rcache_client *client, void *at, size_t n)
{
    struct st_rcache_entry *e;
    int before = made;
    CHECK_OK(cache->ops->get(cache, client, at, n, 0, &e));
    cache->ops->put(cache, e);
    return made == before;
}

/* Memory that cannot be watched is used, and not kept; what the kernel does not tell of is found out. */
START_TEST(what_is_kept)
{
    struct tw_options o = {.n = 1, .settings = BY_NAME};
    struct tw_world *world = tw_create(&o);
    strata_t *s;
    struct st_rcache_client client = {.name = "fake", .make = make, .unmake = unmake};
    CHECK_OK(tw_init(world, 0, &s, NULL, 0));
    struct st_rcache *cache = st_rcache(s);
    CHECK_OK(cache->ops->attach(cache, &client));
    char *a = map_at(NULL, 4, 0);
    CHECK(!was_kept(cache, &client, a, 4 * PAGE));
    CHECK(was_kept(cache, &client, a, 4 * PAGE));
    CHECK(madvise(a, PAGE, MADV_DONTNEED) == 0);
    CHECK(!was_kept(cache, &client, a, 4 * PAGE));
    int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);
    if (id >= 0) {
        CHECK(was_kept(cache, &client, a, 2 * PAGE));
        CHECK(shmat(id, a, SHM_REMAP) == a && shmctl(id, IPC_RMID, NULL) == 0);
        for (int i = 0; i < 3; i++)
            CHECK(!was_kept(cache, &client, a, 2 * PAGE));
        CHECK(shmdt(a) == 0);
    }
    cache->ops->detach(cache, &client);
    CHECK_OK(strata_finalize(s));
    tw_destroy(world);
}
END_TEST

/* In a process of its own: the thread sanitizer lets no threads start in cases that are forked from one that had some.
 */
static int ask_child(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        status = allowed() ? 0 : 77;
        fflush(stdout);
        _exit(status);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void)
{
    int status = ask_child();
    if (status != 0)
        return status;
    Suite *suite = suite_create("memory_userfaultfd");
    TCase *t = tcase_create("all");
    tcase_add_test(t, what_is_kept);
    tcase_add_test(t, nothing_stale);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
