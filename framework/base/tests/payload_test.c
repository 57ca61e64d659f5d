/* Gather and scatter of every kind of data, at every offset. */
#include <check.h>
#include <string.h>

#include <strata/sdk/payload.h>
#include "support/run_suite.h"

static char memory[100], packed[100];

/* A conversion that moves at most 7 bytes per call and reverses the memory order. */
static ptrdiff_t pack(void *user, size_t offset, void *dst, size_t length)
{
    size_t n = length < 7 ? length : 7;
    for (size_t i = 0; i < n; i++)
        ((char *)dst)[i] = ((char *)user)[99 - offset - i];
    return (ptrdiff_t)n;
}
static ptrdiff_t unpack(void *user, size_t offset, const void *src, size_t length)
{
    size_t n = length < 7 ? length : 7;
    for (size_t i = 0; i < n; i++)
        ((char *)user)[99 - offset - i] = ((const char *)src)[i];
    return (ptrdiff_t)n;
}
static ptrdiff_t fails(void *user, size_t offset, void *dst, size_t length)
{
    (void)user, (void)dst, (void)length;
    return offset ? STRATA_ERR_SYSTEM : 1;
}
static ptrdiff_t fails_in(void *user, size_t offset, const void *src, size_t length)
{
    (void)user, (void)src, (void)length;
    return offset ? STRATA_ERR_SYSTEM : 1;
}
static ptrdiff_t stalls(void *user, size_t offset, void *dst, size_t length)
{
    (void)user, (void)offset, (void)dst, (void)length;
    return 0;
}
static ptrdiff_t stalls_in(void *user, size_t offset, const void *src, size_t length)
{
    (void)user, (void)offset, (void)src;
    return (ptrdiff_t)length + 1;
}

static const struct strata_iovec vec[] = {{memory, 10}, {memory + 10, 0}, {memory + 10, 1}, {memory + 11, 89}};

static strata_data_t data_of(int kind)
{
    strata_data_t d = {.kind = (strata_data_kind_t)kind, .length = 100};
    if (kind == STRATA_CONTIGUOUS)
        d.u.buffer = memory;
    else if (kind == STRATA_IOVEC) {
        d.u.iov.v = vec;
        d.u.iov.n = 4;
    } else
        d.u.convert = (strata_convert_t){pack, unpack, memory};
    return d;
}

START_TEST(every_window)
{
    strata_data_t d = data_of(_i);
    ck_assert_int_eq(st_data_check(&d), STRATA_OK);
    for (size_t offset = 0; offset <= 100; offset++) {
        for (size_t length = 0; length <= 100 - offset; length++) {
            char out[100];
            for (int i = 0; i < 100; i++)
                memory[i] = (char)i;
            struct st_payload p = {&d, offset, length};
            ck_assert_int_eq(st_payload_gather(&p, out), STRATA_OK);
            size_t wrong = 0; /* one assertion for all: libcheck writes each to its parent */
            for (size_t i = 0; i < length; i++)
                wrong += out[i] != (char)(_i == STRATA_GENERIC ? 99 - offset - i : offset + i);
            ck_assert_uint_eq(wrong, 0);
            memset(memory, 0, sizeof(memory));
            ck_assert_int_eq(st_data_scatter(&d, offset, out, length), STRATA_OK);
            for (size_t i = 0; i < 100; i++) {
                size_t at = _i == STRATA_GENERIC ? 99 - i : i;
                wrong += memory[at] != (i >= offset && i < offset + length ? (char)at : 0);
            }
            ck_assert_msg(wrong == 0, "window %zu+%zu: %zu bytes are wrong", offset, length, wrong);
            ck_assert(_i != STRATA_CONTIGUOUS || st_payload_contiguous(&p) == memory + offset);
            ck_assert(_i == STRATA_CONTIGUOUS || st_payload_contiguous(&p) == NULL);
        }
    }
}
END_TEST

START_TEST(windows_outside)
{
    strata_data_t d = data_of(_i);
    ck_assert_int_eq(st_payload_gather(&(struct st_payload){&d, 90, 11}, packed), STRATA_ERR_ARG);
    ck_assert_int_eq(st_payload_gather(&(struct st_payload){&d, 101, SIZE_MAX}, packed), STRATA_ERR_ARG);
    ck_assert_int_eq(st_data_scatter(&d, 90, packed, 11), STRATA_ERR_ARG);
    ck_assert_int_eq(st_data_scatter(&d, SIZE_MAX, packed, 2), STRATA_ERR_ARG);
}
END_TEST

START_TEST(conversions_that_fail)
{
    strata_data_t d = {.kind = STRATA_GENERIC, .length = 50, .u.convert = {fails, fails_in, NULL}};
    struct st_payload p = {&d, 0, 50};
    ck_assert_int_eq(st_payload_gather(&p, packed), STRATA_ERR_SYSTEM);
    ck_assert_int_eq(st_data_scatter(&d, 0, packed, 50), STRATA_ERR_SYSTEM);
    d.u.convert = (strata_convert_t){stalls, stalls_in, NULL};
    ck_assert_int_eq(st_payload_gather(&p, packed), STRATA_ERR_ARG);
    ck_assert_int_eq(st_data_scatter(&d, 0, packed, 50), STRATA_ERR_ARG);
}
END_TEST

START_TEST(bad_descriptions)
{
    strata_data_t d = {.kind = STRATA_CONTIGUOUS, .length = 1};
    ck_assert_int_eq(st_data_check(NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    d.length = 0;
    ck_assert_int_eq(st_data_check(&d), STRATA_OK);
    d.kind = (strata_data_kind_t)9;
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    ck_assert_int_eq(st_data_scatter(&(strata_data_t){.kind = (strata_data_kind_t)9, .length = 1}, 0, packed, 1),
                     STRATA_ERR_ARG);
    strata_data_t odd = {.kind = (strata_data_kind_t)9, .length = 1};
    ck_assert_int_eq(st_payload_gather(&(struct st_payload){&odd, 0, 1}, packed), STRATA_ERR_ARG);
    d = data_of(STRATA_IOVEC);
    d.length = 99;
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    d.u.iov.v = NULL;
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    struct strata_iovec wraps[] = {{memory, SIZE_MAX}, {memory, 2}};
    d = (strata_data_t){.kind = STRATA_IOVEC, .length = 1, .u.iov = {wraps, 2}};
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    wraps[0].base = NULL;
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    d = (strata_data_t){.kind = STRATA_GENERIC, .length = 1};
    ck_assert_int_eq(st_data_check(&d), STRATA_ERR_ARG);
    /* A list whose lengths are less than it says ends in an error, not beyond its end. */
    d = data_of(STRATA_IOVEC);
    d.length = 200;
    ck_assert_int_eq(st_payload_gather(&(struct st_payload){&d, 90, 20}, packed), STRATA_ERR_ARG);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("payload");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, every_window, 0, 3);
    tcase_add_loop_test(t, windows_outside, 0, 3);
    tcase_add_test(t, conversions_that_fail);
    tcase_add_test(t, bad_descriptions);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
