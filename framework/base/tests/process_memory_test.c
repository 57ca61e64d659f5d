/* Memory of a process as the kernel counts it. */
#define _GNU_SOURCE 1
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/process_memory.h>
#include <sys/mman.h>
#include <unistd.h>

#include "framework/base/process_memory.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */
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

/* The lines of smaps are the kernel's for mappings in reserved huge pages, which are in no Rss. */
static struct st_process_memory of_lines(const char *text)
{
    struct lines l = {.fd = memfd_create("smaps", MFD_CLOEXEC)};
    struct st_process_memory m = {0};

    ck_assert_int_ge(l.fd, 0);
    ck_assert_int_eq(write(l.fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(lseek(l.fd, 0, SEEK_SET), 0);
    memory_add_all(&m, &l);
    close(l.fd);
    return m;
}

START_TEST(huge_pages)
{
    const size_t mib = 1 << 20;
    const char *const own = "7f0000000000-7f0000800000 rw-p 00000000 00:10 5   /anon_hugepage (deleted)\n"
                            "Rss:                   0 kB\nPss:                   0 kB\n"
                            "Shared_Hugetlb:        0 kB\nPrivate_Hugetlb:    8192 kB\n";
    const char *const segment =
        "7f0001000000-7f0001400000 rw-s 00000000 00:10 6   /memfd:segment (deleted)\n"
        "Rss:                   0 kB\nShared_Hugetlb:     2048 kB\nPrivate_Hugetlb:    2048 kB\n";
    const char *const device = "7f0002000000-7f0002400000 rw-s 00000000 00:10 7   /dev/infiniband/uverbs0\n"
                               "Shared_Hugetlb:        0 kB\nPrivate_Hugetlb:    4096 kB\n";

    struct st_process_memory m = of_lines(own);
    ck_assert_uint_eq(m.private_bytes, 8 * mib);
    ck_assert_uint_eq(m.proportional, 8 * mib);
    ck_assert_uint_eq(m.resident, 8 * mib);
    ck_assert_uint_eq(m.images, 0);
    m = of_lines(segment);
    ck_assert_uint_eq(m.private_bytes, 0);
    ck_assert_uint_eq(m.segments, 4 * mib);
    ck_assert_uint_eq(m.proportional, 4 * mib);
    m = of_lines(device);
    ck_assert_uint_eq(m.private_bytes + m.proportional + m.segments, 0);
    ck_assert_uint_eq(m.device, 4 * mib);
    ck_assert_uint_eq(m.device_share, 4 * mib);
}
END_TEST

/* The same by the kernel, where some are reserved. */
START_TEST(huge_pages_of_this_machine)
{
    const size_t huge = 2 << 20;
    struct st_process_memory before, after;
    char *at = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (at == MAP_FAILED)
        return;
    ck_assert_int_eq(st_process_memory(0, &before), STRATA_OK);
    at[0] = 1;
    ck_assert_int_eq(st_process_memory(0, &after), STRATA_OK);
    ck_assert_uint_ge(after.private_bytes + (256 << 10), before.private_bytes + huge);
    ck_assert_uint_eq(after.images, before.images);
    munmap(at, huge);
}
END_TEST

/* A device is one by its file below /dev, not by a folder of this name that somebody works in. */
START_TEST(devices)
{
    const char *const text = "7f0000000000-7f0000100000 r--p 00000000 00:10 5   /home/infiniband/uverbs/libstrata.so\n"
                             "Rss:                  16 kB\nPss:                  16 kB\nPrivate_Dirty:        16 kB\n"
                             "7f0001000000-7f0001100000 rw-s 00000000 00:10 6   /dev/shm/infiniband\n"
                             "Rss:                  32 kB\nPss:                  32 kB\n"
                             "7f0002000000-7f0002100000 rw-s 00000000 00:10 7   /dev/infiniband/uverbs0\n"
                             "Rss:                  64 kB\nPss:                  64 kB\n"
                             "7f0003000000-7f0003100000 rw-s 00000000 00:10 8   /memfd:softhca (deleted)\n"
                             "Rss:                 128 kB\nPss:                  64 kB\n";
    const struct st_process_memory m = of_lines(text);

    ck_assert_uint_eq(m.images, 16 << 10);
    ck_assert_uint_eq(m.segments, 32 << 10);
    ck_assert_uint_eq(m.device, 192 << 10);
    ck_assert_uint_eq(m.device_share, 128 << 10);
    ck_assert_uint_eq(m.proportional, 48 << 10);
}
END_TEST

/* Two arenas of malloc side by side, and the stack of a thread behind its guard. */
START_TEST(arenas_are_no_stacks)
{
    const char *const text = "7f0004000000-7f0004021000 rw-p 00000000 00:00 0\nPrivate_Dirty:        16 kB\n"
                             "7f0004021000-7f0008000000 ---p 00000000 00:00 0\nPrivate_Dirty:         0 kB\n"
                             "7f0008000000-7f0008021000 rw-p 00000000 00:00 0\nPrivate_Dirty:        32 kB\n"
                             "7f0009000000-7f0009001000 ---p 00000000 00:00 0\nPrivate_Dirty:         0 kB\n"
                             "7f0009001000-7f0009801000 rw-p 00000000 00:00 0\nPrivate_Dirty:        64 kB\n";
    const struct st_process_memory m = of_lines(text);

    ck_assert_uint_eq(m.stack, 64 << 10);
    ck_assert_uint_eq(m.private_bytes, 112 << 10);
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
    tcase_add_test(t, huge_pages);
    tcase_add_test(t, devices);
    tcase_add_test(t, arenas_are_no_stacks);
    tcase_add_test(t, huge_pages_of_this_machine);
    tcase_add_test(t, nobody);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
