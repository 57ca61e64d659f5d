/* Memory of the messages that lanes keep: long blocks are used again, and few stay. */
#include <check.h>
#include <stdlib.h>
#include "framework/worker/lane.h"
#include "support/run_suite.h"

enum { SPARE = 4 << 20, LEAST = 4096, MOST = 8 << 20 };

static struct worker w;

static struct lane_kept *keep(size_t bytes)
{
    struct lane_kept *k = lane_keep_get(&w, bytes);
    ck_assert_ptr_nonnull(k);
    k->size = (uint32_t)(bytes - sizeof *k);
    memset(k->bytes, 7, k->size); /* all of it is there */
    return k;
}

START_TEST(long_blocks_are_used_again)
{
    struct lane_kept *k = keep(100000), *other;
    lane_keep_put(&w, k);
    ck_assert_uint_ge(w.lane_spare_bytes, 100000);
    ck_assert_uint_le(w.lane_spare_bytes, 125000);
    other = keep(50000); /* of another size */
    ck_assert_ptr_ne(other, k);
    ck_assert_ptr_eq(keep(99000), k);
    ck_assert_uint_eq(w.lane_spare_bytes, 0);
    lane_keep_put(&w, k);
    lane_keep_put(&w, other);
    lane_keep_destroy(&w);
    ck_assert_uint_eq(w.lane_spare_bytes, 0);
}
END_TEST

START_TEST(every_size_fits_its_block)
{
    for (size_t bytes = LEAST - 2; bytes < MOST + LEAST; bytes += bytes / 16 + 1)
        for (size_t more = 0; more < 3; more++) {
            struct lane_kept *k = keep(bytes + more);
            lane_keep_put(&w, k);
            ck_assert_uint_le(w.lane_spare_bytes, SPARE);
            k = keep(bytes + more);
            lane_keep_put(&w, k);
        }
    lane_keep_destroy(&w);
}
END_TEST

START_TEST(few_stay)
{
    enum { N = 128 };
    struct lane_kept *k[N];
    for (int i = 0; i < N; i++)
        k[i] = keep(65536);
    for (int i = 0; i < N; i++)
        lane_keep_put(&w, k[i]);
    ck_assert_uint_eq(w.lane_spare_bytes, SPARE);
    lane_keep_put(&w, keep(LEAST)); /* short ones never do */
    ck_assert_uint_eq(w.lane_spare_bytes, SPARE);
    lane_keep_destroy(&w);
}
END_TEST

/* Blocks of sizes that are not used any more make room for those that are. */
START_TEST(the_least_lately_used_go_first)
{
    enum { N = 64 };
    struct lane_kept *k[N];
    for (size_t bytes = 8192; bytes <= 65536; bytes *= 2) {
        for (int i = 0; i < N; i++)
            k[i] = keep(bytes);
        for (int i = 0; i < N; i++)
            lane_keep_put(&w, k[i]);
        ck_assert_uint_le(w.lane_spare_bytes, SPARE);
    }
    ck_assert_uint_eq(w.lane_spare_bytes, SPARE); /* all of the last size */
    for (int i = 0; i < N; i++)
        k[i] = keep(65536);
    ck_assert_uint_eq(w.lane_spare_bytes, 0);
    for (int i = 0; i < N; i++)
        lane_keep_put(&w, k[i]);
    lane_keep_destroy(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lane_keep");
    TCase *tc = tcase_create("keep");
    tcase_add_test(tc, long_blocks_are_used_again);
    tcase_add_test(tc, every_size_fits_its_block);
    tcase_add_test(tc, few_stay);
    tcase_add_test(tc, the_least_lately_used_go_first);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
