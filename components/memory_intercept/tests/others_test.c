/* Other libraries in the process that change the same code, before us and after us: UCX itself when it is installed,
 * and the ways in which such libraries may behave. Nothing stale is handed out, and they see what they saw. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kept.h"

#define BY_NAME "memory=intercept rcache=tree"

static char *map(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

/* Each event is seen by us. */
static void all_seen(void)
{
    char *a = map(8), *b = map(8);
    keep(a, PAGE);
    CHECK(madvise(a, PAGE, MADV_DONTNEED) == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK(mmap(a, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
    CHECK(!was_kept(a, PAGE));
    keep(a + 7 * PAGE, PAGE);
    CHECK(mremap(a, 8 * PAGE, 7 * PAGE, 0) == a);
    CHECK(!was_kept(a + 7 * PAGE, PAGE));
    CHECK(was_kept(a, PAGE));
    CHECK(munmap(a, 7 * PAGE) == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK(munmap(b, 8 * PAGE) == 0);
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* and so it stays */
    a = malloc(4 << 20);                  /* more than the heap has room for */
    b = place(a);
    keep(a, PAGE);
    free(a);
    CHECK(!was_kept(b, PAGE));
    heap_has_room();
    CHECK(sbrk(4 * PAGE) != (void *)-1);
    a = (char *)(((uintptr_t)sbrk(0) - 2 * PAGE) & ~(uintptr_t)(PAGE - 1));
    keep(a, PAGE);
    CHECK(sbrk(-4 * PAGE) != (void *)-1);
    CHECK(!was_kept(a, PAGE));
}

/* ---- UCX --------------------------------------------------------------------------------------------------------- */

enum { VM_UNMAPPED = 1 << 17, BRK = 1 << 7, SBRK = 1 << 5, MADVISE = 1 << 6, SHMDT = 1 << 4 };
struct unmapped {
    void *address;
    size_t size;
};

static _Atomic(uintptr_t) ucx_wants;
static _Atomic(int) ucx_saw;

static void ucx_told(int event, void *what, void *arg)
{
    const struct unmapped *u = what;
    (void)arg;
    if (event == VM_UNMAPPED && (uintptr_t)u->address <= ucx_wants && ucx_wants < (uintptr_t)u->address + u->size)
        ucx_saw++;
}

/* False: it is not installed. */
static bool start_ucx(void)
{
    /* The one that hooks is needed by, and needs, the other one. */
    void *h = dlopen("libucs.so.0", RTLD_NOW | RTLD_GLOBAL);
    if (!h) {
        printf("UCX is not installed: %s\n", dlerror());
        return false;
    }
    int (*set)(int, int, void (*)(int, void *, void *), void *);
    *(void **)&set = dlsym(h, "ucm_set_event_handler");
    CHECK(set && set(VM_UNMAPPED, 0, ucx_told, NULL) == 0);
    return true;
}

static void ucx_sees(void)
{
    char *a = map(2);
    ucx_saw = 0;
    ucx_wants = (uintptr_t)a;
    CHECK(munmap(a, 2 * PAGE) == 0);
    CHECK(ucx_saw == 1);
    ucx_wants = 0;
}

START_TEST(ucx_before_us)
{
    if (!start_ucx())
        return;
    ucx_sees();
    kept_begin(BY_NAME);
    all_seen();
    ucx_sees();
    kept_end();
}
END_TEST

START_TEST(ucx_after_us)
{
    kept_begin(BY_NAME);
    char *a = map(1), *b = map(1);
    keep(a, PAGE);
    if (start_ucx()) {
        /* What was kept before cannot be trusted; what is from now on can. */
        CHECK(!was_kept(a, PAGE));
        CHECK(was_kept(a, PAGE));
        all_seen();
        ucx_sees();
        keep(b, PAGE);
        CHECK(munmap(b, PAGE) == 0);
        CHECK(!was_kept(b, PAGE));
    }
    kept_end();
}
END_TEST

/* ---- how others do it ---------------------------------------------------------------------------------------------
 */

#if defined(__x86_64__)

static _Atomic(int) their_calls;

static int by_syscall(void *at, size_t n)
{
    their_calls++;
    return (int)syscall(SYS_munmap, at, n);
}

/* It does the call itself, and nobody else hears of it. */
static int by_itself(void *at, size_t n)
{
    long rc;
    their_calls++;
    __asm__ volatile("syscall" : "=a"(rc) : "0"((long)SYS_munmap), "D"(at), "S"(n) : "rcx", "r11", "memory");
    return (int)rc;
}

/* mov constant,%r11; jmp *%r11 over munmap's beginning, perhaps behind a nop. */
static void change_munmap(int (*to)(void *, size_t), bool nop)
{
    void *h = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    uint8_t *at = dlsym(h, "munmap"), code[14] = {0x90, 0x49, 0xbb};
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)(PAGE - 1);
    memcpy(code + 3, &to, 8);
    memcpy(code + 11, (uint8_t[]){0x41, 0xff, 0xe3}, 3);
    CHECK(mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    memcpy(at, nop ? code : code + 1, nop ? 14 : 13);
    CHECK(mprotect((void *)page, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
}

START_TEST(one_before_us_is_still_called)
{
    change_munmap(by_itself, false);
    kept_begin(BY_NAME);
    their_calls = 0;
    all_seen();
    CHECK(their_calls >= 2);
    kept_end();
}
END_TEST

START_TEST(one_after_us_that_ends_in_syscall)
{
    kept_begin(BY_NAME);
    char *a = map(1);
    keep(a, PAGE);
    change_munmap(by_syscall, false);
    CHECK(!was_kept(a, PAGE));
    CHECK(was_kept(a, PAGE));
    their_calls = 0;
    all_seen();
    CHECK(their_calls >= 2);
    kept_end();
}
END_TEST

START_TEST(one_after_us_that_does_it_itself)
{
    kept_begin(BY_NAME);
    char *a = map(1);
    keep(a, PAGE);
    change_munmap(by_itself, false);
    CHECK(munmap(a, PAGE) == 0); /* unseen */
    CHECK(mmap(a, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == a);
    CHECK(!was_kept(a, PAGE));
    CHECK(was_kept(a, PAGE));
    their_calls = 0;
    all_seen();
    CHECK(their_calls >= 2);
    kept_end();
}
END_TEST

/* Its code cannot be put behind ours. */
START_TEST(one_after_us_that_cannot_be_followed)
{
    kept_begin(BY_NAME);
    char *a = map(2);
    keep(a, PAGE);
    change_munmap(by_itself, true);
    for (int i = 0; i < 5; i++)
        CHECK(!was_kept(a, PAGE));
    their_calls = 0;
    CHECK(munmap(a, PAGE) == 0 && their_calls == 1);
    CHECK(mmap(a, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == a);
    CHECK(!was_kept(a, PAGE));
    CHECK(tw_log_count(kept.world, ST_LOG_WARN) == 0);
    kept_end();
}
END_TEST

START_TEST(several_one_after_the_other)
{
    change_munmap(by_syscall, false);
    kept_begin(BY_NAME);
    all_seen();
    change_munmap(by_syscall, false);
    CHECK(!was_kept(map(1), PAGE));
    all_seen();
    if (start_ucx()) {
        CHECK(!was_kept(map(1), PAGE));
        all_seen();
        ucx_sees();
    }
    kept_end();
}
END_TEST

#endif

int main(void)
{
    if (test_sanitized()) {
        printf("SKIP: a sanitizer's malloc makes system calls of its own\n");
        return 77;
    }
    Suite *suite = suite_create("memory_intercept beside others");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, test_timeout(60));
    tcase_add_test(t, ucx_before_us);
    tcase_add_test(t, ucx_after_us);
#if defined(__x86_64__)
    tcase_add_test(t, one_before_us_is_still_called);
    tcase_add_test(t, one_after_us_that_ends_in_syscall);
    tcase_add_test(t, one_after_us_that_does_it_itself);
    tcase_add_test(t, one_after_us_that_cannot_be_followed);
    tcase_add_test(t, several_one_after_the_other);
#endif
    suite_add_tcase(suite, t);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
