/* Copies of all lengths and distances, and which of them go by pieces. */
#include <check.h>
#include <stdlib.h>

#include <strata/sdk/copy.h>
#include "support/run_suite.h"

#define PAGE 4096u
#define ROOM (8 * PAGE)

static unsigned char *from, *to;

static void setup(void)
{
    ck_assert_int_eq(posix_memalign((void **)&from, PAGE, ROOM), 0);
    ck_assert_int_eq(posix_memalign((void **)&to, PAGE, ROOM), 0);
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(i * 31 + i / 256);
}

static void teardown(void)
{
    free(from);
    free(to);
}

/* Nothing beside the copy is touched. d: at least 64. */
static void check_copy(void (*copy)(void *, const void *, size_t), size_t d, size_t s, size_t n)
{
    memset(to, 0xa5, ROOM);
    copy(to + d, from + s, n);
    ck_assert_mem_eq(to + d, from + s, n);
    for (size_t i = d - 64; i < d; i++)
        ck_assert_uint_eq(to[i], 0xa5);
    for (size_t i = d + n; i < d + n + 64; i++)
        ck_assert_uint_eq(to[i], 0xa5);
}

static void any(void *dst, const void *src, size_t n)
{
    st_copy(dst, src, n);
}

static void may_be_long(void *dst, const void *src, size_t n)
{
    st_copy_long(dst, src, n);
}

static void shared(void *dst, const void *src, size_t n)
{
    st_copy_shared(dst, src, n, 64);
}

static const size_t lengths[] = {0,    1,    3,    4,    7,    8,    15,   16,   17,   31,   32,
                                 33,   63,   64,   65,   200,  1023, 1024, 1025, 2047, 2048, 2049,
                                 3000, 3072, 3073, 4096, 4097, 8191, 8192, 8193, 9000, 16384};
static const size_t offsets[] = {0, 1, 8, 16, 24, 31, 32, 48, 62, 63, 64, 65, 2048, 4040, 4095};

START_TEST(copies_what_it_is_given)
{
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t k = 0; k < sizeof offsets / sizeof offsets[0]; k++) {
            size_t n = lengths[i], at = offsets[k];
            check_copy(any, 64 + at, 0, n);
            check_copy(any, 64, at, n);
            check_copy(may_be_long, 64 + at, 64, n);
            check_copy(may_be_long, PAGE + at, at, n);
            check_copy(st_copy_in_pieces, 64 + at, 0, n);
            check_copy(shared, 64 + at, 0, n);
            check_copy(shared, PAGE, at, n);
        }
}
END_TEST

START_TEST(knows_what_collides)
{
    ck_assert(!st_copy_collides(to, from));
    for (size_t far = 0; far < 3; far++) {
        ck_assert(st_copy_collides(to + 1, from + far * PAGE));
        ck_assert(st_copy_collides(to + far * PAGE + 31, from));
        ck_assert(st_copy_collides(to + far * PAGE + 63, from));
        ck_assert(!st_copy_collides(to + far * PAGE + 64, from));
        ck_assert(!st_copy_collides(to, from + far * PAGE + 16));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copy");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, copies_what_it_is_given);
    tcase_add_test(t, knows_what_collides);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
