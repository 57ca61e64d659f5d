/* Each way in which memory goes away, by the program's calls and by the C library's own, takes the registration out;
 * what stays is kept. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kept.h"
#include "support/run_suite.h"

#define BY_NAME "memory=intercept rcache=tree"

static char *map(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

START_TEST(calls_of_the_program)
{
    kept_begin(BY_NAME);
    char *a = map(8), *b = map(8);
    keep(a, 8 * PAGE);
    CHECK(munmap(a + 3 * PAGE, PAGE) == 0);
    CHECK(!was_kept(a, 8 * PAGE));
    keep(b, PAGE);
    CHECK(mmap(b, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == b);
    CHECK(!was_kept(b, PAGE));
    char *c = mmap(b, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(c == MAP_FAILED ? errno == EEXIST : c != b && munmap(c, PAGE) == 0); /* old kernels take it for a wish */
    CHECK(was_kept(b, PAGE));
    static const int advices[] = {MADV_DONTNEED, MADV_FREE};
    for (int i = 0; i < 2; i++) {
        keep(b, 2 * PAGE);
        keep(b + 2 * PAGE, PAGE);
        CHECK(madvise(b, 2 * PAGE, advices[i]) == 0);
        CHECK(!was_kept(b, 2 * PAGE));
        CHECK(was_kept(b + 2 * PAGE, PAGE));
    }
    CHECK(madvise(b, 2 * PAGE, MADV_WILLNEED) == 0);
    CHECK(was_kept(b, 2 * PAGE));
    kept_end();
}
END_TEST

START_TEST(mremap_in_all_its_forms)
{
    kept_begin(BY_NAME);
    char *a = map(8), *b = map(8);
    keep(a, PAGE);
    keep(a + 6 * PAGE, PAGE);
    CHECK(mremap(a, 8 * PAGE, 5 * PAGE, 0) == a); /* cut off */
    CHECK(was_kept(a, PAGE));
    CHECK(!was_kept(a + 6 * PAGE, PAGE));
    keep(b, PAGE);
    CHECK(mremap(a, 5 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, b) == b); /* over another */
    CHECK(!was_kept(a, PAGE));
    CHECK(!was_kept(b, PAGE));
    CHECK(mremap(b, 5 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, b + PAGE) == MAP_FAILED);
    keep(b, PAGE);
    CHECK(mremap(b, 5 * PAGE, (size_t)1 << 30, MREMAP_MAYMOVE) != MAP_FAILED); /* no room: it moves */
    CHECK(!was_kept(b, PAGE));
    kept_end();
}
END_TEST

START_TEST(segments_of_system_v)
{
    kept_begin(BY_NAME);
    int id = shmget(IPC_PRIVATE, 4 * PAGE, IPC_CREAT | 0600);
    CHECK(id >= 0);
    char *a = shmat(id, NULL, 0), *b = map(6);
    CHECK(a != (char *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
    keep(a, PAGE);
    keep(a + 3 * PAGE, PAGE);
    keep(b, PAGE);
    keep(b + 4 * PAGE, PAGE);
    CHECK(munmap(a + PAGE, PAGE) == 0); /* in two pieces now */
    CHECK(was_kept(a, PAGE));
    CHECK(shmat(id, b, SHM_REMAP) == b);
    CHECK(!was_kept(b, PAGE));
    CHECK(was_kept(a, PAGE) && was_kept(a + 3 * PAGE, PAGE));
    keep(b, PAGE);
    errno = 0;
    CHECK(shmdt(a) == 0 && errno == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK(!was_kept(a + 3 * PAGE, PAGE));
    CHECK(was_kept(b, PAGE));
    CHECK(shmdt(b) == 0);
    CHECK(!was_kept(b, PAGE));
    kept_end();
}
END_TEST

START_TEST(the_heap)
{
    kept_begin(BY_NAME);
    heap_has_room();
    char *old = sbrk(8 * PAGE);
    CHECK(old != (char *)-1 && sbrk(0) == old + 8 * PAGE);
    char *whole = (char *)(((uintptr_t)old + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    keep(whole, PAGE);
    keep(whole + 5 * PAGE, PAGE);
    CHECK(sbrk(PAGE) != (void *)-1); /* up */
    CHECK(was_kept(whole, PAGE) && was_kept(whole + 5 * PAGE, PAGE));
    CHECK(sbrk(-5 * PAGE) != (void *)-1);
    CHECK(was_kept(whole, PAGE));
    CHECK(!was_kept(whole + 5 * PAGE, PAGE));
    CHECK(brk(old) == 0 && sbrk(0) == old);
    CHECK(!was_kept(whole, PAGE) || whole == old);
    kept_end();
}
END_TEST

START_TEST(calls_by_number)
{
    kept_begin(BY_NAME);
    char *a = map(4);
    keep(a, PAGE);
    keep(a + PAGE, PAGE);
    CHECK(syscall(SYS_madvise, a, PAGE, MADV_DONTNEED) == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK((char *)syscall(SYS_mmap, a, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
    CHECK(!was_kept(a, PAGE));
    CHECK(was_kept(a + PAGE, PAGE));
    CHECK(syscall(SYS_mremap, a, 4 * PAGE, PAGE, 0) == (long)a);
    CHECK(!was_kept(a + PAGE, PAGE));
    CHECK(syscall(SYS_munmap, a, PAGE) == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK(syscall(SYS_getpid) == getpid()); /* the others are left alone, with six arguments and with errors */
    CHECK(syscall(SYS_mmap, NULL, 0L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L) == -1 && errno == EINVAL);
    a = (char *)syscall(SYS_mmap, NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    CHECK(a != MAP_FAILED && munmap(a, PAGE) == 0);
    kept_end();
}
END_TEST

START_TEST(results_and_errors_are_the_calls_own)
{
    kept_begin(BY_NAME);
    errno = 0;
    char *a = map(2);
    CHECK(munmap(a, PAGE) == 0 && errno == 0);
    CHECK(munmap(a + 1, PAGE) == -1 && errno == EINVAL);
    CHECK(mremap(a, PAGE, PAGE, 1 << 20) == MAP_FAILED && errno == EINVAL);
    CHECK(madvise(a + 1, PAGE, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(shmdt(a) == -1 && errno == EINVAL);
    CHECK(shmat(-1, NULL, 0) == (void *)-1 && errno == EINVAL);
    CHECK(brk((void *)-1) == -1 && errno == ENOMEM);
    CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 1) == MAP_FAILED && errno == EINVAL);
    kept_end();
}
END_TEST

/* What malloc, threads and the loader do by themselves. A sanitizer's malloc makes system calls of its own. */
START_TEST(calls_of_the_c_library)
{
    kept_begin(BY_NAME);
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* and so it stays */
    char *a = malloc(1 << 20), *was = place(a);
    keep(a, 1 << 20);
    free(a);
    CHECK(!was_kept(was, 1 << 20));

    a = malloc(1 << 20);
    memset(a, 1, 1 << 20);
    keep(a, 1 << 20);
    was = place(a);
    char *b = realloc(a, 1 << 26);
    CHECK(b && (b == was || !was_kept(was, 1 << 20)));
    free(b);

    void *small[64];
    for (int i = 0; i < 64; i++)
        small[i] = malloc(100000);
    char *in = small[60];
    keep(in, PAGE);
    for (int i = 0; i < 64; i++)
        free(small[i]);
    malloc_trim(0);
    CHECK(!was_kept(in, PAGE));
    kept_end();
}
END_TEST

struct ending {
    _Atomic(uintptr_t) at;
    _Atomic(int) go;
};

static void *end_when_told(void *arg)
{
    struct ending *e = arg;
    e->at = ((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)(PAGE - 1)) - 64 * PAGE;
    while (!e->go)
        usleep(100);
    return NULL;
}

/* The stack is larger than what the C library keeps for the next thread. */
START_TEST(a_thread_that_ends_gives_its_stack_back)
{
    pthread_attr_t attr;
    pthread_t t;
    struct ending e = {0};
    kept_begin(BY_NAME);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64u << 20);
    CHECK(pthread_create(&t, &attr, end_when_told, &e) == 0);
    while (!e.at)
        usleep(100);
    keep((void *)e.at, PAGE);
    e.go = 1;
    CHECK(pthread_join(t, NULL) == 0);
    CHECK(!was_kept((void *)e.at, PAGE));
    kept_end();
}
END_TEST

START_TEST(dlclose_is_seen)
{
    struct link_map *lib = NULL;
    kept_begin(BY_NAME);
    void *h = dlopen("libanl.so.1", RTLD_NOW);
    if (!h)
        h = dlopen("libBrokenLocale.so.1", RTLD_NOW);
    CHECK(h && dlinfo(h, RTLD_DI_LINKMAP, &lib) == 0);
    char *at = (char *)lib->l_addr;
    keep(at, PAGE);
    CHECK(dlclose(h) == 0);
    CHECK(!was_kept(at, PAGE));
    kept_end();
}
END_TEST

/* In a child all goes on; a child made by vfork shares the memory, and what it does is seen. */
START_TEST(children)
{
    int status;
    kept_begin(BY_NAME);
    char *a = map(2);
    keep(a, PAGE);
    pid_t pid = fork();
    if (pid == 0) {
        void *b = malloc(1 << 20);
        free(b);
        _exit(munmap(a, PAGE));
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(!was_kept(a, PAGE)); /* it may be another page after a fork */
    keep(a, PAGE);
    CHECK(system("exit 3") >> 8 == 3);
    CHECK(was_kept(a, PAGE));
    kept_end();
}
END_TEST

static void rank_that_keeps(struct tw_rank *r)
{
    char **a = r->arg;
    struct fake_registrar f;
    struct st_rcache_entry *e;
    struct st_rcache *cache = st_rcache(r->s);
    fake_registrar_start(&f, cache, "fake");
    CHECK_OK(cache->ops->get(cache, &f.client, *a, PAGE, 0, &e));
    cache->ops->put(cache, e);
    CHECK(f.n == 1);
    tw_barrier(r);
    if (r->rank == 0)
        CHECK(munmap(*a, 2 * PAGE) == 0);
    tw_barrier(r);
    cache->ops->apply(cache);
    CHECK(f.n == 0);
    fake_registrar_stop(&f, cache);
}

START_TEST(several_contexts_are_told)
{
    char *a = map(2);
    tw_run(&(struct tw_options){.n = 4, .settings = BY_NAME}, rank_that_keeps, &a);
}
END_TEST

int main(void)
{
    if (test_sanitized()) {
        printf("SKIP: a sanitizer's malloc makes system calls of its own\n");
        return 77;
    }
    Suite *suite = suite_create("memory_intercept");
    TCase *t = tcase_create("all");
    tcase_add_test(t, calls_of_the_program);
    tcase_add_test(t, mremap_in_all_its_forms);
    tcase_add_test(t, segments_of_system_v);
    tcase_add_test(t, the_heap);
    tcase_add_test(t, calls_by_number);
    tcase_add_test(t, results_and_errors_are_the_calls_own);
    tcase_add_test(t, calls_of_the_c_library);
    tcase_add_test(t, dlclose_is_seen);
    tcase_add_test(t, children);
    tcase_add_test(t, a_thread_that_ends_gives_its_stack_back);
    tcase_add_test(t, several_contexts_are_told);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
