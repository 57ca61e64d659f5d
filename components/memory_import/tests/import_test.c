/* An embedder with a memory monitor: this program's own munmap, mmap and so on, which report and then do the call. It
 * is believed when it reports everything, and not when it is deaf or refuses. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <strata/sdk/rcache.h>
#include "support/fake_registrar.h"
#include "support/world.h"
#include "support/run_suite.h"

static struct {
    int deaf;        /* to MAP_FIXED */
    int deaf_inside; /* to what the C library and the loader unmap themselves, as monitors are that change symbols */
    int rc;          /* of memory_watch */
    int asked;
    size_t segment;
} monitor;

/* Strata is to call these. A sanitizer brings its own. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#pragma GCC visibility push(default)
extern void __libc_free(void *p);

int munmap(void *at, size_t n)
{
    strata_host_memory_gone(at, n);
    return (int)syscall(SYS_munmap, at, n);
}

void *mremap(void *at, size_t n, size_t m, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    strata_host_memory_gone(at, n);
    return (void *)syscall(SYS_mremap, at, n, m, flags, to);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if ((flags & MAP_FIXED) && !monitor.deaf)
        strata_host_memory_gone(at, n);
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

int madvise(void *at, size_t n, int advice)
{
    strata_host_memory_gone(at, n);
    return (int)syscall(SYS_madvise, at, n, advice);
}

int shmdt(const void *at)
{
    strata_host_memory_gone(at, monitor.segment);
    return (int)syscall(SYS_shmdt, at);
}

void *shmat(int id, const void *at, int flags)
{
    if (flags & SHM_REMAP)
        strata_host_memory_gone(at, monitor.segment);
    return (void *)syscall(SYS_shmat, id, at, flags);
}

void *sbrk(intptr_t by)
{
    uintptr_t end = (uintptr_t)syscall(SYS_brk, 0);
    if (by < 0)
        strata_host_memory_gone((void *)(end + (uintptr_t)by), (uintptr_t)-by);
    if (by != 0)
        syscall(SYS_brk, end + (uintptr_t)by);
    return (void *)end;
}

void free(void *p)
{
    if (p && !monitor.deaf_inside)
        strata_host_memory_gone(p, malloc_usable_size(p));
    __libc_free(p);
}

int dlclose(void *library)
{
    int (*real)(void *);
    *(void **)&real = dlsym(RTLD_NEXT, "dlclose");
    if (!monitor.deaf_inside)
        strata_host_memory_gone(NULL, SIZE_MAX);
    return real(library);
}

#pragma GCC visibility pop
#endif

static int watch(void *user)
{
    (void)user;
    monitor.asked++;
    return monitor.rc;
}

static char why[1024];
static struct tw_world *world;

static int start(const char *memory, bool with_monitor, strata_t **out)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_setting_t settings[] = {{"rcache", "tree"}, {"memory", memory}};
    struct tw_options o = {.n = 1, .quiet = true};
    world = tw_create(&o);
    strata_host_t host = *tw_host(world, 0);
    if (with_monitor)
        host.memory_watch = watch;
    monitor.segment = 2 * (size_t)sysconf(_SC_PAGESIZE);
    monitor.asked = 0;
    why[0] = '\0';
    config.host = &host;
    config.settings = settings;
    config.n_settings = 2;
    config.error_text = why;
    config.error_text_size = sizeof(why);
    return strata_init(&config, out);
}

START_TEST(one_that_reports_everything)
{
    strata_t *s;
    CHECK_MSG(start("", true, &s) == STRATA_OK, "%s", why); /* before what changes code */
    ck_assert_int_eq(monitor.asked, 1);
    ck_assert_str_eq(st_rcache(s)->memory->name, "import");
    CHECK_OK(strata_finalize(s));
    tw_destroy(world);
    monitor.deaf = 1; /* another embedder of the same process: tested anew */
    ck_assert_int_ne(start("import", true, &s), STRATA_OK);
    ck_assert_msg(strstr(why, "import: its self-test did not see: mmap with MAP_FIXED") != NULL, "%s", why);
    tw_destroy(world);
    monitor.deaf = 0;
    monitor.deaf_inside = 1;
    ck_assert_int_ne(start("import", true, &s), STRATA_OK);
    ck_assert_msg(strstr(why, "did not see: free of a large block, dlclose") != NULL, "%s", why);
    tw_destroy(world);
}
END_TEST

/* Another library changes munmap's code, as such libraries do: mov constant,%r11; jmp *%r11. The work is done. */
#if defined(__x86_64__)
static int other_munmap(void *at, size_t n)
{
    return (int)syscall(SYS_munmap, at, n);
}

static void change_munmap(void)
{
    char *at = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "munmap");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *from = (void *)((uintptr_t)at & ~(uintptr_t)(page - 1));
    int (*to)(void *, size_t) = other_munmap;
    CHECK(mprotect(from, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    memcpy(at, (char[]){0x49, (char)0xbb}, 2);
    memcpy(at + 2, &to, 8);
    memcpy(at + 10, (char[]){0x41, (char)0xff, (char)0xe3}, 3);
    CHECK(mprotect(from, 2 * page, PROT_READ | PROT_EXEC) == 0);
}

static bool was_kept(struct fake_registrar *device, struct st_rcache *cache, void *at)
{
    struct st_rcache_entry *e;
    uint64_t makes = device->makes;
    CHECK_OK(cache->ops->get(cache, &device->client, at, 1, 0, &e));
    cache->ops->put(cache, e);
    return device->makes == makes;
}

static void *a_page(void)
{
    return mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void beside_another(bool deaf)
{
    struct fake_registrar device;
    void *a = a_page(), *b = a_page();
    strata_t *s;
    CHECK_MSG(start("import", true, &s) == STRATA_OK, "%s", why);
    struct st_rcache *cache = st_rcache(s);
    fake_registrar_start(&device, cache, "fake");
    CHECK(!was_kept(&device, cache, a) && was_kept(&device, cache, a));
    change_munmap();
    monitor.deaf_inside = deaf;
    CHECK(!was_kept(&device, cache, a)); /* who knows what was missed */
    for (int i = 0; i < 3; i++)
        CHECK(was_kept(&device, cache, a) == !deaf);
    CHECK(!was_kept(&device, cache, b) && was_kept(&device, cache, b) == !deaf);
    munmap(b, 1);
    CHECK(!was_kept(&device, cache, b));
    fake_registrar_stop(&device, cache);
    CHECK_OK(strata_finalize(s));
    tw_destroy(world);
}

START_TEST(one_that_works_beside_another)
{
    beside_another(false);
}
END_TEST

START_TEST(one_that_another_library_makes_deaf)
{
    beside_another(true);
}
END_TEST
#endif

START_TEST(one_that_does_not)
{
    strata_t *s;
    ck_assert_int_ne(start("import", false, &s), STRATA_OK);
    ck_assert_msg(strstr(why, "import: the embedding program has no memory monitor") != NULL, "%s", why);
    tw_destroy(world);
    monitor.rc = STRATA_ERR_UNSUPPORTED;
    ck_assert_int_ne(start("import", true, &s), STRATA_OK);
    ck_assert_msg(strstr(why, "memory monitor does not work") != NULL, "%s", why);
    ck_assert_int_eq(monitor.asked, 1);
    tw_destroy(world);
}
END_TEST

int main(void)
{
    if (test_sanitized()) {
        printf("SKIP: a sanitizer has a monitor of its own at these calls\n");
        return 77;
    }
    Suite *suite = suite_create("memory_import");
    TCase *t = tcase_create("all");
    tcase_add_test(t, one_that_reports_everything);
    tcase_add_test(t, one_that_does_not);
#if defined(__x86_64__)
    tcase_add_test(t, one_that_works_beside_another);
    tcase_add_test(t, one_that_another_library_makes_deaf);
#endif
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
