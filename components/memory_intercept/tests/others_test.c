/* Other libraries in the process that change the same code, before us and after us: UCX itself when it is installed,
 * and the ways in which such libraries may behave. Nothing stale is handed out, and they see what they saw. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "beside.h"
#include "support/run_suite.h"

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
    char *a = new_pages(2);
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
    char *a = new_pages(1), *b = new_pages(1);
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

#if defined(__x86_64__) || defined(__aarch64__)

static _Atomic(int) their_calls;

static int by_syscall(void *at, size_t n)
{
    their_calls++;
    return (int)syscall(SYS_munmap, at, n);
}

/* The system call, and nobody else hears of it. */
static long raw_munmap(void *at, size_t n)
{
#if defined(__x86_64__)
    long rc;
    __asm__ volatile("syscall" : "=a"(rc) : "0"((long)SYS_munmap), "D"(at), "S"(n) : "rcx", "r11", "memory");
    return rc;
#else
    register long x8 __asm__("x8") = SYS_munmap, x0 __asm__("x0") = (long)at, x1 __asm__("x1") = (long)n;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
    return x0;
#endif
}

static int by_itself(void *at, size_t n)
{
    their_calls++;
    return (int)raw_munmap(at, n);
}

/* Their jump to `to`, as UCX writes it, behind something that cannot be put behind ours if need be: its length. */
static size_t their_jump(uint8_t *code, int (*to)(void *, size_t), bool strange)
{
#if defined(__x86_64__)
    static const uint8_t nop[] = {0x90}, mov_r11[] = {0x49, 0xbb}, jmp_r11[] = {0x41, 0xff, 0xe3};
    uint8_t *p = code;
    memcpy(p, nop, strange ? sizeof(nop) : 0);
    p += strange ? sizeof(nop) : 0;
    memcpy(p, mov_r11, sizeof(mov_r11));
    memcpy(p + sizeof(mov_r11), &to, 8);
    memcpy(p + sizeof(mov_r11) + 8, jmp_r11, sizeof(jmp_r11));
    return (size_t)(p - code) + sizeof(mov_r11) + 8 + sizeof(jmp_r11);
#else
    /* ldr q0 from a distance: a vector; movz, movk x15; br x15 */
    uint64_t at = (uint64_t)(uintptr_t)to;
    uint32_t in[6] = {0x9c000000}, n = strange;
    in[n++] = 0xd2e0000fu | (uint32_t)(at >> 48 & 0xffff) << 5;
    in[n++] = 0xf2c0000fu | (uint32_t)(at >> 32 & 0xffff) << 5;
    in[n++] = 0xf2a0000fu | (uint32_t)(at >> 16 & 0xffff) << 5;
    in[n++] = 0xf280000fu | (uint32_t)(at & 0xffff) << 5;
    in[n++] = 0xd61f01e0u;
    memcpy(code, in, n * 4);
    return n * 4;
#endif
}

/* Over munmap's beginning. */
static void change_munmap(int (*to)(void *, size_t), bool strange)
{
    void *h = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    uint8_t *at = dlsym(h, "munmap"), code[32];
    size_t n = their_jump(code, to, strange), page = (size_t)sysconf(_SC_PAGESIZE);
    void *pages = (void *)((uintptr_t)at & ~(uintptr_t)(page - 1));
    CHECK(mprotect(pages, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    memcpy(at, code, n);
    CHECK(mprotect(pages, 2 * page, PROT_READ | PROT_EXEC) == 0);
    __builtin___clear_cache((char *)at, (char *)at + n);
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
    char *a = new_pages(1);
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
    char *a = new_pages(1);
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
    char *a = new_pages(2);
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
    CHECK(!was_kept(new_pages(1), PAGE));
    all_seen();
    if (start_ucx()) {
        CHECK(!was_kept(new_pages(1), PAGE));
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
    tcase_add_test(t, ucx_before_us);
    tcase_add_test(t, ucx_after_us);
#if defined(__x86_64__) || defined(__aarch64__)
    tcase_add_test(t, one_before_us_is_still_called);
    tcase_add_test(t, one_after_us_that_ends_in_syscall);
    tcase_add_test(t, one_after_us_that_does_it_itself);
    tcase_add_test(t, one_after_us_that_cannot_be_followed);
    tcase_add_test(t, several_one_after_the_other);
#endif
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
