/* The cache's promises one by one: covering look-up, references, entries in use, caps, a device out of memory, lost
 * ranges, clients. */
#include <check.h>
#include "support/fake_registrar.h"
#include "support/world.h"
#include "cache.h"
#include "support/run_suite.h"

enum { PAGE = 4096, START = 1 << 24 };

static struct st_rcache *cache;
static struct fake_registrar f;

static void begin(uint64_t max_bytes, int64_t max_entries)
{
    struct cache_config config = {.max_bytes = max_bytes, .max_entries = max_entries};
    ck_assert_int_eq(cache_make(NULL, &config, &cache), STRATA_OK);
    fake_registrar_start(&f, cache, "fake");
}

static void end(void)
{
    fake_registrar_stop(&f, cache);
    cache->ops->close(cache);
}

static struct st_rcache_entry *get(int page, int pages, uint32_t access)
{
    struct st_rcache_entry *e;
    ck_assert_int_eq(
        cache->ops->get(cache, &f.client, (char *)START + (ptrdiff_t)page * PAGE, (size_t)pages * PAGE, access, &e),
        STRATA_OK);
    fake_registration(&f, e);
    return e;
}

static void use(int page, int pages)
{
    cache->ops->put(cache, get(page, pages, 0));
}

static void gone(int page, int pages)
{
    cache->ops->invalidate(cache, START + (uintptr_t)page * PAGE, START + (uintptr_t)(page + pages) * PAGE);
}

static struct st_rcache_counters count(void)
{
    struct st_rcache_counters n;
    cache->ops->counters(cache, &n);
    return n;
}

START_TEST(contains_the_range_and_the_access)
{
    begin(1 << 20, 100);
    struct st_rcache_entry *e = get(2, 4, ST_RCACHE_LOCAL_WRITE), *other;
    ck_assert_ptr_eq(other = get(2, 4, ST_RCACHE_LOCAL_WRITE), e);
    ck_assert_uint_eq(e->refs, 2);
    cache->ops->put(cache, other);
    ck_assert_ptr_eq(other = get(3, 2, 0), e);
    cache->ops->put(cache, other);
    ck_assert_ptr_ne(other = get(1, 2, 0), e);
    cache->ops->put(cache, other);
    ck_assert_ptr_ne(other = get(5, 2, 0), e);
    cache->ops->put(cache, other);
    ck_assert_ptr_ne(other = get(3, 1, ST_RCACHE_REMOTE_READ), e);
    cache->ops->put(cache, other);
    cache->ops->put(cache, e);
    ck_assert_uint_eq(count().hits, 2);
    ck_assert_uint_eq(count().misses, 4);
    ck_assert_uint_eq(count().bytes, (4 + 2 + 2 + 1) * PAGE);
    end();
}
END_TEST

/* What make gives beyond what was asked for serves later gets; what it does not give, it does not. */
START_TEST(access_is_what_was_made)
{
    begin(1 << 20, 100);
    f.extra = ST_RCACHE_LOCAL_WRITE;
    struct st_rcache_entry *e = get(2, 4, ST_RCACHE_REMOTE_READ), *other;
    ck_assert_uint_eq(e->access, ST_RCACHE_REMOTE_READ | ST_RCACHE_LOCAL_WRITE);
    ck_assert_ptr_eq(other = get(2, 4, ST_RCACHE_LOCAL_WRITE), e);
    cache->ops->put(cache, other);
    f.extra = 0; /* as of memory that may only be read */
    ck_assert_ptr_ne(other = get(2, 4, ST_RCACHE_REMOTE_WRITE), e);
    cache->ops->put(cache, other);
    cache->ops->put(cache, e);
    ck_assert_uint_eq(count().misses, 2);
    end();
}
END_TEST

START_TEST(rounds_to_pages_and_refuses_what_is_no_range)
{
    begin(1 << 20, 100);
    struct st_rcache_entry *e, *same;
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START + PAGE - 1, 2, 0, &e), STRATA_OK);
    ck_assert_uint_eq(e->from, START);
    ck_assert_uint_eq(e->to, START + 2 * PAGE);
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START, 2 * PAGE, 0, &same), STRATA_OK);
    ck_assert_ptr_eq(e, same);
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START, 0, 0, &same), STRATA_ERR_ARG);
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START, SIZE_MAX - START, 0, &same), STRATA_ERR_ARG);
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)(UINTPTR_MAX - 10), 5, 0, &same), STRATA_ERR_ARG);
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START, SIZE_MAX, 0, &same), STRATA_ERR_ARG);
    ck_assert_uint_eq(f.makes, 1);
    end();
}
END_TEST

START_TEST(in_use_and_gone_is_never_handed_out_and_undone_by_the_last_put)
{
    begin(1 << 20, 100);
    struct st_rcache_entry *old = get(0, 4, 0), *again = get(1, 1, 0);
    ck_assert_ptr_eq(old, again);
    gone(2, 1);
    struct st_rcache_entry *fresh = get(1, 1, 0);
    ck_assert_ptr_ne(fresh, old);
    ck_assert_uint_eq(f.n, 2);
    fake_registration(&f, old);
    cache->ops->put(cache, old);
    fake_registration(&f, old);
    ck_assert_uint_eq(f.unmakes, 0);
    cache->ops->put(cache, again);
    ck_assert_uint_eq(f.unmakes, 1);
    cache->ops->put(cache, fresh);
    ck_assert_uint_eq(f.unmakes, 1);
    ck_assert_uint_eq(count().invalidations, 1);
    ck_assert_uint_eq(count().bytes, PAGE);
    ck_assert_uint_eq(count().bytes_max, 5 * PAGE);
    /* gone while it is in use, and the last put is what finds out */
    fresh = get(0, 1, 0);
    gone(0, 1);
    cache->ops->put(cache, fresh);
    ck_assert_uint_eq(f.unmakes, 2);
    end();
}
END_TEST

START_TEST(touching_is_not_overlapping)
{
    begin(1 << 20, 100);
    use(4, 4);
    gone(3, 1);
    gone(8, 1);
    cache->ops->apply(cache);
    ck_assert_uint_eq(f.n, 1);
    ck_assert_uint_eq(count().invalidations, 0);
    cache->ops->invalidate(cache, START + 5 * PAGE, START + 5 * PAGE);
    cache->ops->apply(cache);
    ck_assert_uint_eq(f.n, 1);
    cache->ops->invalidate(cache, START + 8 * PAGE - 1, START + 8 * PAGE);
    cache->ops->apply(cache);
    ck_assert_uint_eq(f.n, 0);
    end();
}
END_TEST

START_TEST(oldest_idle_leaves_first)
{
    begin(1 << 20, 3);
    use(0, 1);
    use(10, 1);
    use(20, 1);
    use(0, 1); /* 10 is the oldest now */
    use(30, 1);
    ck_assert_uint_eq(count().evictions, 1);
    ck_assert_uint_eq(count().misses, 4);
    use(0, 1);
    use(20, 1);
    ck_assert_uint_eq(count().misses, 4);
    use(10, 1);
    ck_assert_uint_eq(count().misses, 5);
    end();
}
END_TEST

START_TEST(caps_hold_for_what_is_idle)
{
    begin(8 * PAGE, 100);
    struct st_rcache_entry *e[4];
    for (int i = 0; i < 4; i++)
        e[i] = get(10 * i, 4, 0); /* twice the cap, all in use */
    ck_assert_uint_eq(f.n, 4);
    ck_assert_uint_eq(count().evictions, 0);
    for (int i = 0; i < 4; i++)
        cache->ops->put(cache, e[i]);
    ck_assert_uint_eq(count().bytes, 8 * PAGE);
    ck_assert_uint_eq(count().evictions, 2);
    ck_assert_uint_eq(cache->ops->flush(cache), 2);
    ck_assert_uint_eq(f.n, 0);
    /* one longer than the cap goes when it is given back, although it was the last one used before too */
    struct st_rcache_entry *a = get(0, 9, 0);
    ck_assert_uint_eq(f.n, 1);
    cache->ops->put(cache, a);
    ck_assert_uint_eq(f.n, 0);
    end();
}
END_TEST

START_TEST(out_of_memory_evicts_and_tries_again)
{
    begin(1 << 30, 1000);
    f.max_bytes = 8 * PAGE;
    use(0, 4);
    use(10, 4);
    use(20, 2); /* the first one leaves: the device has room for eight pages */
    ck_assert_uint_eq(count().evictions, 1);
    ck_assert_uint_eq(f.bytes, 6 * PAGE);
    use(30, 8);
    ck_assert_uint_eq(count().evictions, 3);
    struct st_rcache_entry *e = get(30, 8, 0), *none = NULL;
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START, 1, 0, &none), STRATA_ERR_NOMEM);
    ck_assert_ptr_null(none);
    fake_registration(&f, e);
    cache->ops->put(cache, e);
    use(0, 1);
    /* other errors are passed on, and nothing is evicted for them */
    f.fail_rc = STRATA_ERR_SYSTEM;
    ck_assert_int_eq(cache->ops->get(cache, &f.client, (char *)START + 99 * PAGE, 1, 0, &none), STRATA_ERR_SYSTEM);
    ck_assert_uint_eq(f.n, 1);
    end();
}
END_TEST

START_TEST(too_many_ranges_take_everything_out)
{
    begin(1 << 30, 1000000);
    for (int i = 0; i < 3000; i++)
        use(2 * i, 1);
    struct st_rcache_entry *held = get(5000, 1, 0);
    for (int i = 0; i < MAILBOX_SLOTS; i++)
        gone(2 * i, 1);
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().invalidations, MAILBOX_SLOTS);
    ck_assert_uint_eq(count().overflows, 0);
    for (int i = 0; i <= MAILBOX_SLOTS; i++)
        gone(2 * (MAILBOX_SLOTS + i), 1);
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().overflows, 1);
    ck_assert_uint_eq(f.n, 1);
    fake_registration(&f, held);
    struct st_rcache_entry *fresh = get(5000, 1, 0);
    ck_assert_ptr_ne(held, fresh);
    cache->ops->put(cache, held);
    cache->ops->put(cache, fresh);
    ck_assert_uint_eq(f.n, 1);
    /* and all slots are free again */
    for (int i = 0; i < MAILBOX_SLOTS; i++)
        gone(5000, 1);
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().overflows, 1);
    ck_assert_uint_eq(f.n, 0);
    end();
}
END_TEST

START_TEST(what_cannot_concern_the_cache_takes_no_slot)
{
    begin(1 << 30, 1000);
    use(100, 10);
    for (int i = 0; i < 2 * MAILBOX_SLOTS; i++) {
        gone(i % 100, 1);
        gone(110 + i, 1);
    }
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().overflows, 0);
    ck_assert_uint_eq(count().ranges, 0);
    ck_assert_uint_eq(f.n, 1);
    gone(0, 1000);
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().ranges, 1);
    ck_assert_uint_eq(f.n, 0);
    use(300, 1); /* the bounds begin anew */
    gone(105, 1);
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().ranges, 1);
    end();
}
END_TEST

START_TEST(clients_share_the_caps_and_nothing_else)
{
    begin(1 << 30, 2);
    struct fake_registrar g;
    struct st_rcache_entry *e, *of_g;
    fake_registrar_start(&g, cache, "second");
    e = get(0, 4, 0);
    ck_assert_int_eq(cache->ops->get(cache, &g.client, (char *)START, PAGE, 0, &of_g), STRATA_OK);
    ck_assert_ptr_ne(e, of_g);
    ck_assert_ptr_eq(of_g->client, &g.client);
    gone(0, 1);
    cache->ops->apply(cache);
    ck_assert_uint_eq(count().invalidations, 2);
    fake_registrar_stop(&g, cache); /* in use: no put will follow */
    cache->ops->put(cache, e);
    ck_assert_uint_eq(f.n, 0);
    end();
}
END_TEST

START_TEST(limits_follow_the_machine)
{
    struct cache_config config = {.max_bytes = 12345, .max_entries = 1};
    ck_assert_uint_eq(cache_limit(&config), 12345);
    config.max_bytes = 0;
    ck_assert_uint_gt(cache_limit(&config), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rcache_tree");
    TCase *t = tcase_create("all");
    tcase_add_test(t, contains_the_range_and_the_access);
    tcase_add_test(t, access_is_what_was_made);
    tcase_add_test(t, rounds_to_pages_and_refuses_what_is_no_range);
    tcase_add_test(t, in_use_and_gone_is_never_handed_out_and_undone_by_the_last_put);
    tcase_add_test(t, touching_is_not_overlapping);
    tcase_add_test(t, oldest_idle_leaves_first);
    tcase_add_test(t, caps_hold_for_what_is_idle);
    tcase_add_test(t, out_of_memory_evicts_and_tries_again);
    tcase_add_test(t, too_many_ranges_take_everything_out);
    tcase_add_test(t, what_cannot_concern_the_cache_takes_no_slot);
    tcase_add_test(t, clients_share_the_caps_and_nothing_else);
    tcase_add_test(t, limits_follow_the_machine);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
