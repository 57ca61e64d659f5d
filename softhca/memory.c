/* Registered pages that go away. An adapter pins pages: when a program unmaps registered memory and maps something else
 * there, the adapter goes on writing to the old pages, and data is lost in silence. We copy by address, which would
 * hide the mistake; so it is looked for. The kernel's userfaultfd tells of munmap, mremap and madvise(MADV_DONTNEED) in
 * watched ranges, whoever calls them, glibc's own free included, and lets the caller go on once we have read that. Then
 * the region is marked, and whoever uses it is refused and told (mr.c). Unmapping alone is no mistake: registration
 * caches deregister later. Where userfaultfd is not allowed nothing is watched. */
#define _GNU_SOURCE 1
#include "hca.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* The watcher takes no lock and allocates nothing: whoever unmaps waits for it, and may hold any lock. */
static int uffd = -1, ask = -1;
static sem_t answer;
static bool tried;
static pid_t of_process;

static void gone(uint64_t from, uint64_t to)
{
    struct uffdio_range range = {from, to - from};

    for (uint32_t i = 0; i < atomic_load(&hca.top_mr); i++) {
        struct hca_mr *mr = hca_mr_at(hca.segment, i);
        if (atomic_load(&mr->key) != 0 && mr->base < to && mr->base + mr->length > from)
            atomic_store(&mr->gone, HCA_GONE);
    }
    (void)ioctl(uffd, UFFDIO_UNREGISTER, &range); /* what comes there next is not ours to fill */
}

static void handle(const struct uffd_msg *m)
{
    switch (m->event) {
    case UFFD_EVENT_UNMAP:
    case UFFD_EVENT_REMOVE:
        gone(m->arg.remove.start, m->arg.remove.end);
        break;
    case UFFD_EVENT_REMAP:
        gone(m->arg.remap.from, m->arg.remap.from + m->arg.remap.len);
        break;
    case UFFD_EVENT_PAGEFAULT: { /* a page that was taken without our being told: as if it had just been mapped */
        uint64_t page = hca_page_size(), at = m->arg.pagefault.address & ~(page - 1);
        struct uffdio_zeropage zero = {.range = {at, page}};
        /* Refused while another thread changes what is mapped, until we have read that: then whoever waits for the page
         * is to try again. */
        if (ioctl(uffd, UFFDIO_ZEROPAGE, &zero) != 0)
            (void)ioctl(uffd, UFFDIO_WAKE, &zero.range);
        break;
    }
    default:
        break;
    }
}

static void *watch(void *arg)
{
    struct pollfd f[2] = {{.fd = uffd, .events = POLLIN}, {.fd = ask, .events = POLLIN}};
    struct uffd_msg m;
    uint64_t count;

    (void)arg;
    for (;;) {
        if (poll(f, 2, -1) < 0 && errno != EINTR)
            return NULL;
        /* Before the event is read, which lets go of who unmaps: who uses a region then waits until it is marked. */
        atomic_store(&hca.watching, 1);
        atomic_store(&hca.header->watching, 1);
        while (read(uffd, &m, sizeof m) == sizeof m)
            handle(&m);
        atomic_store(&hca.header->watching, 0);
        atomic_store(&hca.watching, 0);
        if (f[1].revents && read(ask, &count, sizeof count) == sizeof count)
            sem_post(&answer);
    }
}

/* Waits until every event that was read has been dealt with. Whoever unmaps goes on as soon as its event is read; it
 * may map and register the same addresses again before the watcher has marked what was there. */
static void catch_up(void)
{
    const uint64_t one = 1;

    if (write(ask, &one, sizeof one) == sizeof one)
        while (sem_wait(&answer) != 0 && errno == EINTR)
            ;
}

/* Waits for every thread that has unmapped watched pages and not come back. The kernel tells of them after they are
 * free for others, who may be about to register what they have mapped there: what is told then is not of theirs. While
 * such a thread is under way the kernel refuses to fill any page; and this one is there already, or not watched.
 * Bounded: it may be held up by whoever registers. */
static void await_unmapping(uint64_t page_at)
{
    const struct timespec moment = {.tv_nsec = 50000};
    struct uffdio_zeropage any = {.range = {page_at, hca_page_size()}};

    for (int i = 0; i < 10000 && ioctl(uffd, UFFDIO_ZEROPAGE, &any) != 0 && errno == EAGAIN; i++)
        if (i < 10)
            sched_yield();
        else
            nanosleep(&moment, NULL);
    catch_up();
}

/* Under hca.lock. */
static bool ready(void)
{
    struct uffdio_api api = {
        .api = UFFD_API, .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP};
    const char *wish = getenv("SOFTHCA_WATCH");
    pthread_attr_t a;
    pthread_t t;

    if (tried && of_process == getpid())
        return uffd >= 0;
    tried = true;
    of_process = getpid();
    atomic_store(&hca.watching, 0); /* a parent's watcher is not in its child */
    uffd = -1;
    if (wish && strcmp(wish, "0") == 0)
        return false;
    uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (uffd < 0)
        return false;
    ask = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sem_init(&answer, 0, 0);
    pthread_attr_init(&a);
    pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&a, 128u << 10);
    if (ask < 0 || ioctl(uffd, UFFDIO_API, &api) != 0 || pthread_create(&t, &a, watch, NULL) != 0) {
        close(uffd);
        uffd = -1;
    }
    pthread_attr_destroy(&a);
    return uffd >= 0;
}

static struct uffdio_range pages(const struct hca_mr *mr)
{
    uint64_t page = hca_page_size(), from = mr->base & ~(page - 1);

    return (struct uffdio_range){from, ((mr->base + mr->length + page - 1) & ~(page - 1)) - from};
}

bool hca_watch(const struct hca_mr *mr)
{
    struct uffdio_register r = {.range = pages(mr), .mode = UFFDIO_REGISTER_MODE_MISSING};

    /* Refused for memory that is not watchable, such as files: those are not watched. */
    if (mr->length == 0 || !ready())
        return false;
    await_unmapping(r.range.start);
    return ioctl(uffd, UFFDIO_REGISTER, &r) == 0;
}

void hca_unwatch(const struct hca_mr *mr)
{
    struct uffdio_range r = pages(mr);

    if (mr->length == 0 || uffd < 0 || of_process != getpid())
        return;
    /* Another region may lie on the same pages. */
    for (uint32_t i = 0; i < atomic_load(&hca.top_mr); i++) {
        const struct hca_mr *other = hca_mr_at(hca.segment, i);
        struct uffdio_range o = pages(other);
        if (other != mr && atomic_load(&other->key) != 0 && o.start < r.start + r.len && o.start + o.len > r.start)
            return;
    }
    (void)ioctl(uffd, UFFDIO_UNREGISTER, &r);
}
