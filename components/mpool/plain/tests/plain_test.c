/* mpool_plain, and what users get from it: strata_mem_alloc. With a context, for its open is all that the plugin
 * offers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <strata/host.h>
#include <strata/sdk/mpool.h>
#include "support/world.h"
#include "support/run_suite.h"

static struct tw_world *world;
static strata_t *s;

static struct st_mpool *begin(const char *settings)
{
    struct tw_options o = {.n = 1, .settings = settings};
    char err[512] = "";
    world = tw_create(&o);
    ck_assert_msg(tw_init(world, 0, &s, err, sizeof(err)) == STRATA_OK, "%s", err);
    ck_assert_ptr_nonnull(st_mpool(s));
    return st_mpool(s);
}

static void end(void)
{
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    tw_destroy(world);
}

/* One assertion for all: libcheck writes each to its parent. */
static bool all_are(const char *p, size_t n, char value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

START_TEST(whole_pages)
{
    struct st_mpool *pool = begin("btl=self");
    static const size_t lengths[] = {1, 4095, 4096, 4097, 1 << 20, (3 << 20) + 5};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t got = 0;
        char *p = pool->ops->alloc(pool, lengths[i], &got);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % pool->page, 0);
        ck_assert_uint_eq(got % pool->page, 0);
        ck_assert(got >= lengths[i] && got < lengths[i] + pool->page);
        ck_assert_msg(all_are(p, got, 0), "not all of %zu bytes are 0", got);
        memset(p, 7, got);
        pool->ops->free(pool, p, got);
    }
    size_t got = 77;
    ck_assert_ptr_null(pool->ops->alloc(pool, SIZE_MAX, &got));
    ck_assert_ptr_null(pool->ops->alloc(pool, (size_t)1 << 50, &got));
    ck_assert_uint_eq(got, 77);
    end();
}
END_TEST

START_TEST(for_peers)
{
    struct st_mpool *pool = begin("btl=self");
    struct st_shared_piece p[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pool->ops->alloc_shared(pool, 5000, &p[i]), STRATA_OK);
        ck_assert_uint_eq(p[i].length % pool->page, 0);
        memset(p[i].memory, 7, p[i].length);
    }
    struct st_shared_piece found;
    ck_assert(pool->ops->find_shared(pool, (char *)p[1].memory + 10, 20, &found));
    ck_assert_uint_eq(found.offset, p[1].offset + 10);
    ck_assert(!pool->ops->find_shared(pool, &found, sizeof found, &found));
    ck_assert_int_eq(p[0].fd, p[1].fd);
    ck_assert_uint_ne(p[0].offset, p[1].offset);
    for (int i = 0; i < 2; i++)
        pool->ops->free_shared(pool, &p[i]);
    end();
}
END_TEST

START_TEST(for_users)
{
    void *a = NULL, *b = NULL, *c = NULL;
    begin("btl=self");
    ck_assert_int_eq(strata_mem_alloc(NULL, 1, &a), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_alloc(s, 1, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_alloc(s, (size_t)1 << 50, &a), STRATA_ERR_NOMEM);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(strata_mem_alloc(s, 0, &a), STRATA_OK);
    ck_assert_int_eq(strata_mem_alloc(s, 100000, &b), STRATA_OK);
    ck_assert_int_eq(strata_mem_alloc(s, 5, &c), STRATA_OK);
    memset(b, 1, 100000);
    memset(c, 1, 5);
    ck_assert_int_eq(strata_mem_free(s, b), STRATA_OK);
    ck_assert_int_eq(strata_mem_free(s, b), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_free(s, (char *)c + 1), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_free(s, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_free(NULL, c), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_free(s, a), STRATA_OK);
    end(); /* gives c back: the address sanitizer would say otherwise */
}
END_TEST

START_TEST(many)
{
    enum { N = 3000 };
    static char *block[N];
    begin("btl=self");
    for (size_t i = 0; i < N; i++) {
        void *p;
        ck_assert_int_eq(strata_mem_alloc(s, 1, &p), STRATA_OK);
        block[i] = p;
        *block[i] = (char)i;
    }
    for (size_t k = 0; k < N; k++) { /* 7 is no divisor of N: every one, in another order */
        size_t i = k * 7 % N;
        ck_assert_int_eq(*block[i], (char)i);
        ck_assert_int_eq(strata_mem_free(s, block[i]), STRATA_OK);
        ck_assert_int_eq(strata_mem_free(s, block[i]), STRATA_ERR_ARG);
    }
    end();
}
END_TEST

START_TEST(kept)
{
    void *a = NULL, *b = NULL;
    begin("btl=self");
    ck_assert_int_eq(strata_mem_alloc(s, 10000, &a), STRATA_OK);
    ck_assert_int_eq(strata_mem_alloc(s, 10000, &b), STRATA_OK);
    ck_assert_int_eq(strata_host_memory_helps(s), 0); /* nothing here registers memory */
    memset(a, 5, 10000);
    strata_host_keep_memory(s);
    ck_assert_int_eq(strata_mem_free(s, b), STRATA_OK); /* given back is given back */
    ck_assert_int_eq(msync(b, 4096, MS_ASYNC), -1);
    end();
    ck_assert(all_are(a, 10000, 5));
    ck_assert_int_eq(munmap(a, 12288), 0);
}
END_TEST

/* Blocks for an embedder: what was given back is had again, within limits, and never by strata_mem_alloc. */
START_TEST(spare)
{
    void *a = NULL, *b = NULL, *c = NULL;
    begin("btl=self mca_base_mem_spare=64k");
    ck_assert_int_eq(strata_host_mem_alloc(s, 20000, &a), STRATA_OK);
    memset(a, 1, 20000);
    ck_assert_int_eq(strata_mem_free(s, a), STRATA_OK);
    ck_assert_int_eq(strata_mem_free(s, a), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mem_alloc(s, 20000, &b), STRATA_OK);
    ck_assert_ptr_ne(a, b);
    ck_assert(all_are(b, 20000, 0));
    ck_assert_int_eq(strata_host_mem_alloc(s, 100, &c), STRATA_OK); /* too little for such a block */
    ck_assert_ptr_ne(a, c);
    ck_assert_int_eq(strata_host_mem_alloc(s, 15000, &c), STRATA_OK);
    ck_assert_ptr_eq(a, c);
    ck_assert_int_eq(strata_mem_free(s, c), STRATA_OK);
    /* Another one that fits beside it only when it goes, and one that never does. */
    ck_assert_int_eq(strata_host_mem_alloc(s, 60000, &b), STRATA_OK);
    ck_assert_int_eq(strata_mem_free(s, b), STRATA_OK);
    ck_assert_int_eq(msync(a, 4096, MS_ASYNC), -1);
    ck_assert_int_eq(msync(b, 4096, MS_ASYNC), 0);
    ck_assert_int_eq(strata_host_mem_alloc(s, 70000, &c), STRATA_OK);
    ck_assert_int_eq(strata_mem_free(s, c), STRATA_OK);
    ck_assert_int_eq(msync(c, 4096, MS_ASYNC), -1);
    end();
    ck_assert_int_eq(msync(b, 4096, MS_ASYNC), -1);
}
END_TEST

START_TEST(asked_for)
{
    begin("btl=self mpool=plain");
    ck_assert_int_ne(strata_host_memory_helps(s), 0);
    end();
}
END_TEST

START_TEST(names)
{
    struct tw_options o = {.n = 1, .settings = "mpool=plane"};
    char err[512] = "";
    strata_t *none = NULL;
    world = tw_create(&o);
    ck_assert_int_eq(tw_init(world, 0, &none, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "plain") != NULL, "%s", err);
    tw_destroy(world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mpool_plain");
    TCase *t = tcase_create("pool");
    tcase_add_test(t, whole_pages);
    tcase_add_test(t, for_peers);
    tcase_add_test(t, for_users);
    tcase_add_test(t, many);
    tcase_add_test(t, kept);
    tcase_add_test(t, spare);
    tcase_add_test(t, asked_for);
    tcase_add_test(t, names);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
