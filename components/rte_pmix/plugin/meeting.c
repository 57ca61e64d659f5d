#define _GNU_SOURCE
#include "plugin/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <strata/status.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A file begins as zeros, whoever makes it. */
struct meeting_page {
    _Atomic(uint32_t) size;     /* ranks of the job */
    _Atomic(uint32_t) arrivals; /* at all fences, of all ranks */
    _Atomic(uint32_t) round;    /* fences that have ended: a futex */
    _Atomic(uint32_t) place[];  /* of a rank: 0, 1 and the fences that it has arrived at, or MEETING_LEFT */
};

#define MEETING_LEFT UINT32_MAX

static int meeting_lock(int fd, int rank)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(fd, F_SETLK, &l);
}

static int meeting_take_place(struct rte_pmix_meeting *m)
{
    uint32_t none = 0, absent = 0;
    if (!atomic_compare_exchange_strong(&m->page->size, &none, (uint32_t)m->size) && none != (uint32_t)m->size)
        return STRATA_ERR_PROTOCOL;
    /* The lock comes first: who sees the place filled finds it held. */
    if (meeting_lock(m->fd, m->rank) != 0)
        return errno == EAGAIN || errno == EACCES ? STRATA_ERR_STATE : STRATA_ERR_SYSTEM;
    return atomic_compare_exchange_strong(&m->page->place[m->rank], &absent, 1) ? STRATA_OK : STRATA_ERR_STATE;
}

int rte_pmix_meeting_enter(struct rte_pmix_meeting *m, const char *path, int rank, int size)
{
    void *page = MAP_FAILED;
    int rc = STRATA_ERR_SYSTEM;
    *m = (struct rte_pmix_meeting){.rank = rank, .size = size};
    m->bytes = sizeof(*m->page) + (size_t)size * sizeof(m->page->place[0]);
    m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (m->fd >= 0 && ftruncate(m->fd, (off_t)m->bytes) == 0)
        page = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (page != MAP_FAILED) {
        m->page = page;
        rc = meeting_take_place(m);
    }
    if (rc == STRATA_OK)
        return rc;
    int why = errno;
    if (page != MAP_FAILED)
        (void)munmap(page, m->bytes);
    if (m->fd >= 0)
        (void)close(m->fd);
    m->fd = -1;
    errno = why;
    return rc;
}

void rte_pmix_meeting_leave(struct rte_pmix_meeting *m)
{
    atomic_store(&m->page->place[m->rank], MEETING_LEFT);
    (void)munmap(m->page, m->bytes);
    (void)close(m->fd);
    m->fd = -1;
}

int rte_pmix_meeting_dead(const struct rte_pmix_meeting *m, int rank)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    uint32_t place = atomic_load(&m->page->place[rank]);
    if (rank == m->rank || place == 0 || place == MEETING_LEFT || fcntl(m->fd, F_GETLK, &l) != 0)
        return 0;
    return l.l_type == F_UNLCK && atomic_load(&m->page->place[rank]) != MEETING_LEFT;
}

/* A rank that cannot arrive any more at the fence of number `fence`. */
static int meeting_lost(const struct rte_pmix_meeting *m, uint32_t fence)
{
    for (int r = 0; r < m->size; r++) {
        uint32_t place = atomic_load(&m->page->place[r]);
        if (place == MEETING_LEFT || (place > 0 && place <= fence && rte_pmix_meeting_dead(m, r)))
            return 1;
    }
    return 0;
}

static int meeting_complete(const struct rte_pmix_meeting *m)
{
    uint32_t due = m->fences * (uint32_t)m->size; /* wraps as arrivals does */
    return (int32_t)(atomic_load(&m->page->arrivals) - due) >= 0;
}

int rte_pmix_meeting_fence(struct rte_pmix_meeting *m)
{
    struct meeting_page *p = m->page;
    m->fences++;
    atomic_store(&p->place[m->rank], 1 + m->fences);
    atomic_fetch_add(&p->arrivals, 1);
    if (meeting_complete(m)) { /* the last one to arrive */
        atomic_fetch_add(&p->round, 1);
        (void)syscall(SYS_futex, &p->round, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return STRATA_OK;
    }
    for (;;) {
        const struct timespec look = {.tv_nsec = 100000000}; /* between two looks for ranks that have died */
        uint32_t round = atomic_load(&p->round);
        if (meeting_complete(m))
            return STRATA_OK;
        long rc = syscall(SYS_futex, &p->round, FUTEX_WAIT, round, &look, NULL, 0);
        if (rc != 0 && errno == ETIMEDOUT && meeting_lost(m, m->fences) && !meeting_complete(m))
            return STRATA_ERR_PEER;
    }
}
