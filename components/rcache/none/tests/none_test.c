/* rcache_none, and which component the framework chooses: here with a context, for its open is all that the plugin
 * offers. */
#include <check.h>
#include <string.h>
#include <strata/sdk/rcache.h>
#include "support/fake_registrar.h"
#include "support/world.h"
#include "support/run_suite.h"

enum { START = 1 << 24, PAGE = 4096 };

static struct tw_world *world;
static strata_t *s;
static struct st_rcache *cache;
static struct fake_registrar f;

static void begin(const char *settings)
{
    struct tw_options o = {.n = 1, .settings = settings};
    char err[512] = "";
    world = tw_create(&o);
    ck_assert_msg(tw_init(world, 0, &s, err, sizeof(err)) == STRATA_OK, "%s", err);
    cache = st_rcache(s);
    ck_assert_ptr_nonnull(cache);
    fake_registrar_start(&f, cache, "fake");
}

static void end(void)
{
    fake_registrar_stop(&f, cache);
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    tw_destroy(world);
}

static struct st_rcache_entry *get(uintptr_t base, size_t len)
{
    struct st_rcache_entry *e;
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (void *)base, len, ST_RCACHE_LOCAL_WRITE, &e), STRATA_OK);
    fake_registration(&f, e);
    return e;
}

START_TEST(registers_each_time)
{
    struct st_rcache_counters n;
    struct st_rcache_entry *e, *nothing = NULL;
    begin("rcache=none");
    e = get(START + 10, PAGE);
    ck_assert_uint_eq(e->to - e->from, 2 * PAGE);
    struct st_rcache_entry *other = get(START + 10, PAGE);
    ck_assert_ptr_ne(e, other);
    ck_assert_uint_eq(f.n, 2);
    cache->ops->invalidate(cache, START, START + PAGE);
    ck_assert_uint_eq(cache->ops->flush(cache), 0);
    ck_assert_uint_eq(f.n, 2);
    cache->ops->put(cache, e);
    cache->ops->put(cache, other);
    ck_assert_uint_eq(f.n, 0);
    f.extra = ST_RCACHE_REMOTE_READ;
    e = get(START, PAGE);
    ck_assert_uint_eq(e->access, ST_RCACHE_LOCAL_WRITE | ST_RCACHE_REMOTE_READ);
    cache->ops->put(cache, e);
    f.fail_rc = STRATA_ERR_NOMEM;
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (void *)START, 1, 0, &nothing), STRATA_ERR_NOMEM);
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (void *)START, 0, 0, &nothing), STRATA_ERR_ARG);
    cache->ops->counters(cache, &n);
    ck_assert_uint_eq(n.misses, 4);
    ck_assert_uint_eq(n.hits, 0);
    ck_assert_uint_eq(n.entries, 0);
    ck_assert_uint_eq(n.bytes, 0);
    ck_assert_uint_eq(n.bytes_max, 4 * PAGE);
    get(START, 1); /* detaching undoes it */
    end();
}
END_TEST

/* Memory that is certain to stay: what is registered there and in use serves others. */
START_TEST(shares_what_is_held)
{
    struct st_rcache_counters n;
    begin("rcache=none");
    cache->ops->hold(cache, START, START + 8 * PAGE);
    struct st_rcache_entry *whole = get(START, 8 * PAGE), *part = get(START + PAGE + 5, 10);
    ck_assert_ptr_eq(whole, part);
    struct st_rcache_entry *over = get(START + 7 * PAGE, 2 * PAGE); /* not all of it stays */
    ck_assert_ptr_ne(over, whole);
    struct st_rcache_entry *more;
    ck_assert_int_eq(
        cache->ops->get(cache, &f.client, (void *)START, 1, ST_RCACHE_LOCAL_WRITE | ST_RCACHE_ATOMIC, &more),
        STRATA_OK);
    ck_assert_ptr_ne(more, whole); /* other access */
    ck_assert_uint_eq(f.n, 3);
    cache->ops->put(cache, more);
    cache->ops->put(cache, over);
    cache->ops->put(cache, whole);
    ck_assert_uint_eq(f.n, 1);
    cache->ops->put(cache, part);
    ck_assert_uint_eq(f.n, 0);
    cache->ops->unhold(cache, START, START + PAGE); /* no such range: nothing happens */
    whole = get(START, 8 * PAGE);
    cache->ops->unhold(cache, START, START + 8 * PAGE);
    part = get(START, PAGE);
    ck_assert_ptr_ne(whole, part);
    cache->ops->put(cache, whole);
    cache->ops->put(cache, part);
    cache->ops->counters(cache, &n);
    ck_assert_uint_eq(n.hits, 1);
    ck_assert_uint_eq(n.entries, 0);
    cache->ops->hold(cache, START, START + PAGE); /* closing frees it */
    end();
}
END_TEST

#define UNTOLD "memory=^import,intercept "

/* Where nobody tells of memory that goes away a cache that keeps registrations must be asked for, and is warned of. */
START_TEST(keeps_only_when_asked_to)
{
    begin(UNTOLD);
    cache->ops->put(cache, get(START, PAGE));
    ck_assert_uint_eq(f.n, 0);
    ck_assert_int_eq(tw_log_count(world, ST_LOG_WARN), 0);
    end();
    begin(UNTOLD "rcache_tree_priority=1000");
    cache->ops->put(cache, get(START, PAGE));
    ck_assert_uint_eq(f.n, 0);
    end();
    begin(UNTOLD "rcache=tree");
    cache->ops->put(cache, get(START, PAGE));
    ck_assert_uint_eq(f.n, 1);
    ck_assert_int_eq(tw_log_count(world, ST_LOG_WARN), 1);
    end();
    begin(UNTOLD "rcache=tree rcache_tree_max_entries=2 rcache_tree_max_bytes=8k");
    for (uintptr_t i = 0; i < 10; i++)
        cache->ops->put(cache, get(START + i * PAGE, PAGE));
    ck_assert_uint_eq(f.n, 2);
    end();
}
END_TEST

START_TEST(says_why_there_is_none)
{
    struct tw_options o = {.n = 1, .settings = UNTOLD "rcache=^none", .quiet = true};
    char text[1024] = "";
    world = tw_create(&o);
    CHECK_OK(tw_init(world, 0, &s, text, sizeof(text)));
    ck_assert_ptr_null(st_rcache(s));
    st_rejected(s, "rcache", text, sizeof(text));
    ck_assert_str_eq(text, "tree: nothing in this process tells it when memory goes away");
    CHECK_OK(strata_finalize(s));
    tw_destroy(world);
    o.settings = "rcache=tre";
    world = tw_create(&o);
    ck_assert_int_ne(tw_init(world, 0, &s, text, sizeof(text)), STRATA_OK);
    ck_assert_msg(strstr(text, "did you mean \"tree\"") != NULL, "%s", text);
    tw_destroy(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rcache_none");
    TCase *t = tcase_create("all");
    tcase_add_test(t, registers_each_time);
    tcase_add_test(t, shares_what_is_held);
    tcase_add_test(t, keeps_only_when_asked_to);
    tcase_add_test(t, says_why_there_is_none);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
