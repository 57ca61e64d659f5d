/* Memory of a process as the kernel counts it. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/process_memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/run_suite.h"

enum { GROWTH = 8 << 20 };

static char *map(int flags)
{
    char *at = mmap(NULL, GROWTH, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

    ck_assert(at != MAP_FAILED);
    return at;
}

static __attribute__((noinline)) size_t stack_with(size_t bytes)
{
    struct st_process_memory m;
    volatile char *used = __builtin_alloca(bytes);

    for (size_t i = 0; i < bytes; i += 1024)
        used[i] = 1;
    ck_assert_int_eq(st_process_memory(0, &m), STRATA_OK);
    return m.stack;
}

static void *stack_of_thread(void *own)
{
    *(size_t *)own = stack_with(GROWTH / 16);
    return NULL;
}

START_TEST(stacks_of_threads)
{
    size_t before = stack_with(1), after = stack_with(GROWTH / 16);

    ck_assert_uint_gt(before, 0);
    ck_assert_uint_ge(after + 4096, before + GROWTH / 16);
    size_t own = 0;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stack_of_thread, &own), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_ge(own, before + GROWTH / 16);
}
END_TEST

START_TEST(growth)
{
    struct st_process_memory before, after;

    ck_assert_int_eq(st_process_memory(0, &before), STRATA_OK);
    ck_assert_uint_gt(before.images, 0);
    ck_assert_uint_gt(before.page_tables, 0);
    ck_assert_uint_ge(before.resident_most, before.resident / 2);
    ck_assert_uint_eq(before.device, 0);
    char *own = map(MAP_PRIVATE), *segment = map(MAP_SHARED);
    ck_assert_uint_eq(st_resident_bytes(own, GROWTH), 0);
    memset(own, 1, GROWTH / 2);
    memset(segment, 1, GROWTH);
    ck_assert_uint_eq(st_resident_bytes(own, GROWTH), GROWTH / 2);
    ck_assert_uint_eq(st_resident_bytes(own + 100, 200), 200);
    ck_assert_uint_eq(st_resident_bytes(own + GROWTH / 2 - 10, 100), 10);
    ck_assert_uint_eq(st_resident_bytes(NULL, 100), 0);
    ck_assert_int_eq(st_process_memory(getpid(), &after), STRATA_OK);
    /* Other memory of the process may shrink by a few pages, or grow. */
    ck_assert_uint_ge(after.private_bytes + (256 << 10), before.private_bytes + GROWTH / 2);
#ifndef __SANITIZE_THREAD__ /* whose shadow grows as well */
    ck_assert_uint_le(after.private_bytes - before.private_bytes, GROWTH / 2 + (1 << 20));
#endif
    ck_assert_uint_ge(after.segments - before.segments, GROWTH);
    ck_assert_uint_ge(after.resident + (256 << 10), before.resident + GROWTH + GROWTH / 2);
    munmap(own, GROWTH);
    munmap(segment, GROWTH);
}
END_TEST

START_TEST(nobody)
{
    struct st_process_memory m = {.resident = 7};

    ck_assert_int_eq(st_process_memory(0x7ffffff0, &m), STRATA_ERR_NOT_FOUND);
    ck_assert_uint_eq(m.resident, 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process memory");
    TCase *t = tcase_create("all");
    tcase_add_test(t, growth);
    tcase_add_test(t, stacks_of_threads);
    tcase_add_test(t, nobody);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
