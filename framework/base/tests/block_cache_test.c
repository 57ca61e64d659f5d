/* Long blocks are used again, and few stay. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/block_cache.h>
#include "support/run_suite.h"

enum { MOST = 4 << 20, LONGEST = 8 << 20, LINE = 64, SKEW = 48 };

static struct st_block_cache cache;

static void *get(size_t bytes)
{
    void *block = st_block_get(&cache, bytes);

    ck_assert_ptr_nonnull(block);
    memset(block, 7, bytes); /* all of it is there */
    return block;
}

static void setup(void)
{
    cache = (struct st_block_cache){.most = MOST, .skew = SKEW};
}

static void teardown(void)
{
    st_block_cache_clear(&cache);
    ck_assert_uint_eq(cache.bytes, 0);
    ck_assert_uint_eq(cache.slack, 0);
}

START_TEST(long_blocks_are_used_again)
{
    void *block = get(100000), *other;

    ck_assert_uint_eq((uintptr_t)block % LINE, SKEW);
    ck_assert_uint_le(cache.slack, 25000);
    st_block_put(&cache, block, 100000);
    ck_assert_uint_ge(cache.bytes, 100000);
    ck_assert_uint_le(cache.bytes, 125000);
    other = get(50000); /* of another size */
    ck_assert_ptr_ne(other, block);
    ck_assert_ptr_eq(get(99000), block);
    ck_assert_uint_eq(cache.bytes, 0);
    st_block_put(&cache, block, 99000);
    st_block_put(&cache, other, 50000);
}
END_TEST

START_TEST(every_size_fits_its_block)
{
    for (size_t bytes = ST_BLOCK_SHORT - 2; bytes < LONGEST + ST_BLOCK_SHORT; bytes += bytes / 16 + 1)
        for (size_t more = 0; more < 3; more++)
            for (int again = 0; again < 2; again++) {
                st_block_put(&cache, get(bytes + more), bytes + more);
                ck_assert_uint_le(cache.bytes, MOST);
            }
    st_block_put(&cache, NULL, 0);
}
END_TEST

START_TEST(few_stay)
{
    enum { N = 128 };
    void *block[N];

    for (int i = 0; i < N; i++)
        block[i] = get(65536);
    for (int i = 0; i < N; i++)
        st_block_put(&cache, block[i], 65536);
    ck_assert_uint_eq(cache.bytes, MOST);
    st_block_put(&cache, get(ST_BLOCK_SHORT), ST_BLOCK_SHORT); /* short ones never do */
    ck_assert_uint_eq(cache.bytes, MOST);
}
END_TEST

/* Blocks of sizes that are not used any more make room for those that are. */
START_TEST(the_least_recently_used_go_first)
{
    enum { N = 64 };
    void *block[N];

    for (size_t bytes = 8192; bytes <= 65536; bytes *= 2) {
        for (int i = 0; i < N; i++)
            block[i] = get(bytes);
        for (int i = 0; i < N; i++)
            st_block_put(&cache, block[i], bytes);
        ck_assert_uint_le(cache.bytes, MOST);
    }
    ck_assert_uint_eq(cache.bytes, MOST); /* all of the last size */
    for (int i = 0; i < N; i++)
        block[i] = get(65536);
    ck_assert_uint_eq(cache.bytes, 0);
    for (int i = 0; i < N; i++)
        st_block_put(&cache, block[i], 65536);
}
END_TEST

START_TEST(a_cache_of_zero_bytes_keeps_nothing)
{
    cache = (struct st_block_cache){.most = 0};
    st_block_put(&cache, get(65536), 65536);
    ck_assert_uint_eq(cache.bytes, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("block_cache");
    TCase *tc = tcase_create("blocks");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, long_blocks_are_used_again);
    tcase_add_test(tc, every_size_fits_its_block);
    tcase_add_test(tc, few_stay);
    tcase_add_test(tc, the_least_recently_used_go_first);
    tcase_add_test(tc, a_cache_of_zero_bytes_keeps_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
