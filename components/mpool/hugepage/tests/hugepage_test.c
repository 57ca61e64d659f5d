/* mpool_hugepage: whatever this machine has reserved, memory comes, on its boundaries, and reads as zero. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/mpool.h>
#include "support/world.h"
#include "support/run_suite.h"

#define LARGE ((size_t)2 << 20)

static struct tw_world *world;
static strata_t *s;

static int try_begin(const char *settings, char *err, size_t err_size)
{
    struct tw_options o = {.n = 1, .settings = settings, .quiet = true};
    world = tw_create(&o);
    return tw_init(world, 0, &s, err, err_size);
}

static struct st_mpool *begin(const char *settings)
{
    char err[512] = "";
    ck_assert_msg(try_begin(settings, err, sizeof(err)) == STRATA_OK, "%s", err);
    ck_assert_ptr_nonnull(st_mpool(s));
    return st_mpool(s);
}

static void end(void)
{
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    tw_destroy(world);
}

/* What smaps says of the mapping that begins at p: its kernel page size in kB, and whether it asked for large pages. */
static void mapping(const void *p, unsigned long *kb, bool *asks)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from, to;
    bool here = false;

    *kb = 0;
    *asks = false;
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)p && (uintptr_t)p < to;
        else if (here && strncmp(line, "KernelPageSize:", 15) == 0)
            *kb = strtoul(line + 15, NULL, 10);
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            *asks = strstr(line, " hg") != NULL;
    }
    fclose(f);
}

static void use(struct st_mpool *pool, size_t len, size_t page)
{
    size_t got = 0;
    unsigned long kb;
    bool asks;
    char *p = pool->ops->alloc(pool, len, &got);

    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq((uintptr_t)p % page, 0);
    ck_assert_uint_eq(got % page, 0);
    ck_assert(got >= len && got < len + page);
    mapping(p, &kb, &asks);
    if (page == LARGE)
        ck_assert_msg(kb == 2048 || asks, "neither reserved nor transparent large pages: %lu kB", kb);
    else
        ck_assert(kb == pool->page / 1024 && !asks);
    for (size_t at = 0; at < got; at += 512)
        ck_assert_int_eq(p[at], 0);
    memset(p, 7, got);
    pool->ops->free(pool, p, got);
}

START_TEST(large_and_small)
{
    struct st_mpool *pool = begin("btl=self mpool=hugepage mpool_hugepage_page_size=2m");
    for (int i = 0; i < 3; i++) {
        use(pool, 1, pool->page);
        use(pool, LARGE - 1, pool->page);
        use(pool, LARGE, LARGE);
        use(pool, 3 * LARGE + 1, LARGE);
    }
    size_t got;
    ck_assert_ptr_null(pool->ops->alloc(pool, SIZE_MAX, &got));
    ck_assert_ptr_null(pool->ops->alloc(pool, (size_t)1 << 50, &got));
    end();
}
END_TEST

/* Rings have the system's pages, however long they are. */
START_TEST(for_peers)
{
    struct st_mpool *pool = begin("btl=self mpool=hugepage mpool_hugepage_page_size=2m");
    struct st_shared_piece p;
    ck_assert_int_eq(pool->ops->alloc_shared(pool, LARGE + 1, &p), STRATA_OK);
    ck_assert_uint_eq(p.length, LARGE + pool->page);
    memset(p.memory, 7, p.length);
    struct st_shared_piece found;
    ck_assert(pool->ops->find_shared(pool, (char *)p.memory + LARGE, 1, &found));
    ck_assert_uint_eq(found.offset, p.offset + LARGE);
    pool->ops->free_shared(pool, &p);
    ck_assert(!pool->ops->find_shared(pool, p.memory, 1, &found));
    end();
}
END_TEST

START_TEST(by_default_and_for_users)
{
    void *p;
    unsigned long kb;
    bool asks;
    begin("btl=self mpool=hugepage mpool_hugepage_place=0");
    ck_assert_int_eq(strata_mem_alloc(s, 3 * LARGE, &p), STRATA_OK);
    mapping(p, &kb, &asks);
    ck_assert_msg(kb > 4 || asks, "neither reserved nor transparent large pages: %lu kB", kb);
    memset(p, 1, 3 * LARGE);
    ck_assert_int_eq(strata_mem_free(s, p), STRATA_OK);
    end();
}
END_TEST

START_TEST(not_a_page)
{
    char err[512] = "";
    ck_assert_int_eq(try_begin("mpool=hugepage mpool_hugepage_page_size=3m", err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "power of two") != NULL, "%s", err);
    tw_destroy(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mpool_hugepage");
    TCase *t = tcase_create("pool");
    tcase_add_test(t, large_and_small);
    tcase_add_test(t, for_peers);
    tcase_add_test(t, by_default_and_for_users);
    tcase_add_test(t, not_a_page);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
