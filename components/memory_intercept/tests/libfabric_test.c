/* libfabric in the same process, its own memory monitor at work: by memory hooks, which change the same code as we do
 * and are taken away again when its last domain is closed, or by userfaultfd; started before us and after us. We miss
 * nothing, and neither does it. Its verbs provider starts the monitor with a domain; the device is softhca. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "beside.h"

#if __has_include(<rdma/fi_domain.h>) && defined(__x86_64__)
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "support/await.h"
#include "support/run_suite.h"

#define SETTINGS BY_NAME " btl=self"

static struct {
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    bool at_once; /* it is told before memory goes, not later */
} lib;

/* The first bytes of the C library's munmap. */
static uint64_t code_of_munmap(void)
{
    uint64_t word;
    memcpy(&word, dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "munmap"), sizeof(word));
    return word;
}

/* mov constant,%r11, as it begins what it writes over a function. */
static bool changed_by_libfabric(uint64_t word)
{
    return (word & 0xffff) == 0xbb49;
}

static struct fi_info *look_for(int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
                                               struct fi_info **),
                                struct fi_info *wish)
{
    struct fi_info *found = NULL;
    wish->fabric_attr->prov_name = strdup("verbs");
    wish->ep_attr->type = FI_EP_DGRAM; /* what needs no connection manager of the kernel's */
    wish->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    wish->mode = ~0ull;
    int rc = getinfo(FI_VERSION(1, 17), NULL, NULL, 0, wish, &found);
    CHECK_MSG(rc == 0, "libfabric finds no verbs device: %d", rc);
    CHECK(!strcmp(found->domain_attr->name, "soft0-dgram"));
    return found;
}

/* Starts its monitor: memhooks or userfaultfd. */
static void start_libfabric(const char *monitor)
{
    setenv("FI_MR_CACHE_MONITOR", monitor, 1);
    setenv("FI_PROVIDER", "verbs", 1);
    setenv("FI_VERBS_DGRAM_USE_NAME_SERVER", "0", 1);
    void *h = dlopen("libfabric.so.1", RTLD_NOW);
    CHECK_MSG(h, "%s", dlerror());
    struct fi_info *(*dup)(const struct fi_info *);
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    void (*release)(struct fi_info *);
    *(void **)&dup = dlsym(h, "fi_dupinfo");
    *(void **)&getinfo = dlsym(h, "fi_getinfo");
    *(void **)&fabric = dlsym(h, "fi_fabric");
    *(void **)&release = dlsym(h, "fi_freeinfo");
    CHECK(dup && getinfo && fabric && release);
    struct fi_info *wish = dup(NULL), *found = look_for(getinfo, wish);
    uint64_t before = code_of_munmap();
    CHECK(fabric(found->fabric_attr, &lib.fabric, NULL) == 0);
    CHECK(fi_domain(lib.fabric, found, &lib.domain, NULL) == 0);
    release(wish);
    release(found);
    lib.at_once = !strcmp(monitor, "memhooks");
    CHECK(lib.at_once ? changed_by_libfabric(code_of_munmap()) : code_of_munmap() == before);
}

static void stop_libfabric(void)
{
    CHECK(fi_close(&lib.domain->fid) == 0);
    CHECK(fi_close(&lib.fabric->fid) == 0);
}

/* The key of a registration of its, which goes back into its cache. */
static uint64_t key_of(void *at)
{
    struct fid_mr *mr;
    CHECK(fi_mr_reg(lib.domain, at, PAGE, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL) == 0);
    uint64_t key = fi_mr_key(mr);
    CHECK(fi_close(&mr->fid) == 0);
    return key;
}

/* It keeps a registration, and gives it up when its memory goes. */
static void libfabric_sees(void)
{
    char *a = new_pages(1);
    uint64_t first = key_of(a);
    CHECK(key_of(a) == first);
    CHECK(munmap(a, PAGE) == 0);
    CHECK(mmap(a, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == a);
    if (!lib.at_once) /* its thread is told */
        AWAIT(key_of(a) != first, usleep(1000));
    CHECK(key_of(a) != first);
    CHECK(munmap(a, PAGE) == 0);
}

static void before_us(const char *monitor)
{
    start_libfabric(monitor);
    libfabric_sees();
    kept_begin(SETTINGS);
    CHECK(!changed_by_libfabric(code_of_munmap()));
    all_seen();
    libfabric_sees();
    all_seen();
}

/* Another page comes to be where one was kept, while the code is not as we left it: what was kept is not believed, and
 * from then on all is well. */
static void replaced_while_changed(char *a)
{
    CHECK(munmap(a, PAGE) == 0);
    CHECK(mmap(a, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == a);
    CHECK(!was_kept(a, PAGE));
    CHECK(was_kept(a, PAGE));
}

START_TEST(hooks_before_us)
{
    before_us("memhooks");
    char *a = new_pages(1);
    keep(a, PAGE);
    /* It puts back the code that it found, and with that takes away our change. */
    uint64_t ours = code_of_munmap();
    stop_libfabric();
    CHECK(code_of_munmap() != ours);
    replaced_while_changed(a);
    all_seen();
    kept_end();
}
END_TEST

START_TEST(hooks_after_us)
{
    kept_begin(SETTINGS);
    char *a = new_pages(1);
    keep(a, PAGE);
    start_libfabric("memhooks");
    replaced_while_changed(a);
    CHECK(!changed_by_libfabric(code_of_munmap()));
    all_seen();
    libfabric_sees();
    /* It puts back what it found: our change, the first one. */
    stop_libfabric();
    replaced_while_changed(a);
    all_seen();
    kept_end();
}
END_TEST

/* Domains come and go, and the hooks with them. */
START_TEST(hooks_again_and_again)
{
    kept_begin(SETTINGS);
    for (int i = 0; i < 20; i++) {
        char *a = new_pages(1);
        start_libfabric("memhooks");
        keep(a, PAGE);
        libfabric_sees();
        all_seen();
        if (i % 2)
            (void)was_kept(a, PAGE);
        stop_libfabric();
        CHECK(munmap(a, PAGE) == 0);
        CHECK(!was_kept(a, PAGE));
        all_seen();
    }
    kept_end();
}
END_TEST

START_TEST(userfaultfd_before_us)
{
    before_us("userfaultfd");
    stop_libfabric();
    all_seen();
    kept_end();
}
END_TEST

START_TEST(userfaultfd_after_us)
{
    kept_begin(SETTINGS);
    char *a = new_pages(1);
    keep(a, PAGE);
    start_libfabric("userfaultfd");
    CHECK(was_kept(a, PAGE)); /* it changes nothing of ours */
    all_seen();
    libfabric_sees();
    all_seen();
    stop_libfabric();
    all_seen();
    kept_end();
}
END_TEST

/* Again, with softhca; and softhca does not watch memory itself: a page has one userfaultfd. */
static void with_softhca(char **argv)
{
    const char *build = getenv("STRATA_BUILD");
    char path[4096], fabric[32];
    if (getenv("SOFTHCA_WATCH"))
        return;
    snprintf(path, sizeof(path), "%s/softhca/.libs/libsofthca.so", build ? build : ".");
    if (access(path, R_OK) != 0) {
        printf("SKIP: there is no softhca in this build\n");
        exit(77);
    }
    snprintf(fabric, sizeof(fabric), "libfabric-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_WATCH", "0", 1);
    setenv("LD_PRELOAD", path, 1);
    execv("/proc/self/exe", argv);
    CHECK_MSG(0, "execv: %m");
}

static bool userfaultfd_allowed(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0)
        printf("not tested with libfabric's userfaultfd, which is not allowed here: %m\n");
    else
        close(fd);
    return fd >= 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (test_sanitized()) {
        printf("SKIP: a sanitizer's malloc makes system calls of its own\n");
        return 77;
    }
    with_softhca(argv);
    Suite *suite = suite_create("memory_intercept beside libfabric");
    TCase *t = tcase_create("all");
    tcase_add_test(t, hooks_before_us);
    tcase_add_test(t, hooks_after_us);
    tcase_add_test(t, hooks_again_and_again);
    if (userfaultfd_allowed()) {
        tcase_add_test(t, userfaultfd_before_us);
        tcase_add_test(t, userfaultfd_after_us);
    }
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

#else

int main(void)
{
    printf("SKIP: libfabric is not installed (Debian: libfabric-dev), or this is not an x86-64\n");
    return 77;
}

#endif
