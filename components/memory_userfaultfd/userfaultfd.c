/* memory "userfaultfd": the kernel tells of memory that it was asked to watch. Nothing of the program is changed.
 *
 * What is going to be kept is registered with a userfaultfd, for write protection that is never used, so no page fault
 * ever comes of it. A thread of ours reads the events. An unmapping thread waits in the kernel until its event has been
 * read, but not until it has been reported; and another thread may be given the addresses before that. So each look-up
 * asks: the kernel answers EAGAIN while an event of any kind is under way, and ENOENT for memory that is not what was
 * registered, as after shmat with SHM_REMAP, of which it tells nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <strata/sdk/memory.h>
#include <strata/sdk/process_memory.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* Process-wide, as what is mapped is; written under the framework's lock. */
static struct {
    int fd;
    pid_t of;                  /* started in this process: a child has neither the thread nor what is watched */
    uintptr_t page, page_end;  /* one that is always registered: to ask whether anything is under way */
    _Atomic(unsigned) reading; /* not 0: the thread has read, or may have, what it has not reported yet */
} watcher = {.fd = -1};

static void userfaultfd_tell(const struct uffd_msg *m)
{
    if (m->event == UFFD_EVENT_UNMAP || m->event == UFFD_EVENT_REMOVE)
        st_memory_gone((uintptr_t)m->arg.remove.start, (uintptr_t)m->arg.remove.end);
    else if (m->event == UFFD_EVENT_REMAP)
        st_memory_gone((uintptr_t)m->arg.remap.from, (uintptr_t)(m->arg.remap.from + m->arg.remap.len));
}

/* The thread. It allocates and frees nothing: its own munmap would wait for itself. */
static void *userfaultfd_watch(void *arg)
{
    struct pollfd p = {.fd = watcher.fd, .events = POLLIN};
    struct uffd_msg m[16];
    for (;;) {
        (void)poll(&p, 1, -1);
        atomic_store(&watcher.reading, 1); /* before the read lets the others go on */
        ssize_t n = read(watcher.fd, m, sizeof(m));
        for (ssize_t i = 0; i < n / (ssize_t)sizeof(m[0]); i++)
            userfaultfd_tell(&m[i]);
        atomic_store(&watcher.reading, 0);
    }
    return arg;
}

/* 0 when the kernel has no event under way and [from, to) is all registered. It takes nothing away: no page of it is
 * write protected. */
static int userfaultfd_ask(uintptr_t from, uintptr_t to)
{
    struct uffdio_writeprotect w = {.range = {from, to - from}, .mode = 0};
    return ioctl(watcher.fd, UFFDIO_WRITEPROTECT, &w) == 0 ? 0 : errno;
}

static bool userfaultfd_settle(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    int rc, saved = errno;
    (void)source;
    if (from >= to) {
        from = watcher.page;
        to = watcher.page_end;
    }
    while ((rc = userfaultfd_ask(from, to)) == EAGAIN || rc == EINTR)
        sched_yield();
    if (rc != 0) /* it is something else now, or it never was watched */
        st_memory_gone(from, to);
    while (atomic_load(&watcher.reading))
        sched_yield();
    errno = saved;
    return true;
}

static bool userfaultfd_cover(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    struct uffdio_register r = {.range = {from, to - from}, .mode = UFFDIO_REGISTER_MODE_WP};
    (void)source;
    return ioctl(watcher.fd, UFFDIO_REGISTER, &r) == 0;
}

static bool userfaultfd_vouches(struct st_memory_source *source, enum st_memory_event event)
{
    (void)source;
    return event == ST_MEMORY_BRK || event == ST_MEMORY_SHMDT || event == ST_MEMORY_SHM_REMAP ||
           event == ST_MEMORY_DLCLOSE;
}

static const _Atomic(uint64_t) restless = 1; /* each look-up asks */
static struct st_memory_source source = {.name = "userfaultfd",
                                         .pulse = &restless,
                                         .settle = userfaultfd_settle,
                                         .cover = userfaultfd_cover,
                                         .vouches = userfaultfd_vouches,
                                         .before = false};

static bool userfaultfd_start_thread(void)
{
    pthread_t t;
    pthread_attr_t a;
    sigset_t all, old;
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&t, &a, userfaultfd_watch, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&a);
    return rc == 0;
}

/* NULL, or what failed. */
static const char *userfaultfd_open_watcher(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
                                         UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    size_t page = st_page_size();
    watcher.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (watcher.fd < 0)
        return "userfaultfd is not allowed here";
    if (ioctl(watcher.fd, UFFDIO_API, &api) != 0)
        return "this kernel's userfaultfd does not tell of unmapped memory";
    void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return "out of memory";
    watcher.page = (uintptr_t)at;
    watcher.page_end = watcher.page + page;
    if (!userfaultfd_cover(NULL, watcher.page, watcher.page_end) ||
        userfaultfd_ask(watcher.page, watcher.page_end) != 0)
        return "this kernel's userfaultfd cannot watch writes";
    return userfaultfd_start_thread() ? NULL : "no thread can be started";
}

static int userfaultfd_start(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                             struct st_memory_source **out)
{
    (void)config, (void)host;
    if (watcher.of != getpid()) {
        if (watcher.fd >= 0)
            close(watcher.fd);
        atomic_store(&watcher.reading, 0);
        const char *failed = userfaultfd_open_watcher();
        if (failed) {
            st_reject(s, c, "%s: %s", failed, strerror(errno));
            if (watcher.fd >= 0)
                close(watcher.fd);
            watcher.fd = -1;
            return STRATA_ERR_UNSUPPORTED;
        }
        watcher.of = getpid();
        source.tested = false;
    }
    *out = &source;
    return STRATA_OK;
}

static const struct st_memory_component_ops component_ops = {.start = userfaultfd_start, .patches = false};

ST_COMPONENT(memory, userfaultfd) = {
    ST_COMPONENT_HEAD("memory", "userfaultfd", "0.1.0", "the kernel tells of memory that it was asked to watch"),
    .ops_size = sizeof(component_ops),
    .priority = -1,
    .ops = &component_ops,
};
