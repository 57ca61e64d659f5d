/* Files of a peer that are mapped here, for stores into its memory regions: at most HCA_FILES, each in the place that
 * its owner gave it, and each of FILE_MOST bytes at most. A mapping that no region lies in any more goes when another
 * file of the peer is mapped or a connection to it is closed. */
#define _GNU_SOURCE 1
#include "hca.h"
#include "fabric.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_MOST (1ull << 30)

struct hca_mapped {
    _Atomic(uint64_t) serial; /* of the file; 0: none */
    _Atomic(uint32_t) users;  /* threads that store to it */
    char *at;                 /* NULL: it cannot be mapped */
    uint64_t bytes;
};

/* Under hca.lock. Threads that hold it only store, and wait for nobody. If one does not let go in time, its pages stay
 * mapped. */
static void forget(struct hca_mapped *m)
{
    /* The serial is cleared before users are looked at, and hold() counts before it looks at the serial. */
    atomic_store(&m->serial, 0);
    for (int i = 0; i < 1000 && atomic_load(&m->users) > 0; i++)
        sched_yield();
    if (m->at && atomic_load(&m->users) == 0)
        munmap(m->at, m->bytes);
    m->at = NULL;
    m->bytes = 0;
}

void hca_mapped_trim(struct hca_peer *p)
{
    struct hca_mapped *m = atomic_load(&p->mapped);
    const bool dead = m && hca_peer_dead(p);

    for (uint32_t i = 0; m && i < HCA_FILES; i++)
        if (m[i].at && (dead || atomic_load(&m[i].serial) != atomic_load(&hca_file_at(p->segment, i)->serial)))
            forget(&m[i]);
}

/* The descriptor may be of anything if the owner is broken or has closed it: it is opened only if it is a memfd, and
 * mapped if it is of this file. */
static void map(const struct hca_peer *p, const struct hca_file *f, struct hca_mapped *m)
{
    static const char memfd[] = "/memfd:";
    const uint64_t device = HCA_ONCE(f->device), inode = HCA_ONCE(f->inode);
    char path[64], target[sizeof memfd] = "";
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)p->pid, (int)HCA_ONCE(f->fd));
    if (readlink(path, target, sizeof target - 1) < 0 || strcmp(target, memfd) != 0)
        return;
    const int fd = hca_memory_open(path, O_RDWR, &st);
    if (fd < 0)
        return;
    if (st.st_dev == device && st.st_ino == inode && st.st_size > 0 && (uint64_t)st.st_size <= FILE_MOST) {
        char *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (at != MAP_FAILED) {
            /* A child of fork has no use for it, and would keep the memory. */
            (void)madvise(at, (size_t)st.st_size, MADV_DONTFORK);
            m->at = at;
            m->bytes = (uint64_t)st.st_size;
        }
    }
    close(fd);
}

/* Brings in a file that is not mapped, or in whose place another one is. */
static __attribute__((noinline)) void bring_in(struct hca_peer *p, uint32_t slot, uint64_t serial)
{
    struct hca_mapped *all;

    pthread_mutex_lock(&hca.lock);
    all = atomic_load(&p->mapped);
    if (!all && !atomic_load(&p->dead) && (all = calloc(HCA_FILES, sizeof *all)) != NULL)
        atomic_store(&p->mapped, all);
    if (all && !atomic_load(&p->dead) && atomic_load(&all[slot].serial) != serial) {
        hca_mapped_trim(p);
        /* A broken owner may say that it has the old file still. */
        forget(&all[slot]);
        map(p, hca_file_at(p->segment, slot), &all[slot]);
        atomic_store(&all[slot].serial, serial);
    }
    pthread_mutex_unlock(&hca.lock);
}

/* With a count of users, if it is this file. */
static bool hold(struct hca_mapped *m, uint64_t serial)
{
    atomic_fetch_add(&m->users, 1);
    if (atomic_load(&m->serial) == serial)
        return true;
    atomic_fetch_sub(&m->users, 1);
    return false;
}

char *hca_mapped_hold(struct hca_peer *p, uint32_t number, uint64_t serial, uint64_t *bytes)
{
    struct hca_mapped *all = atomic_load_explicit(&p->mapped, memory_order_acquire);

    if (!all || !hold(&all[number - 1], serial)) {
        bring_in(p, number - 1, serial);
        all = atomic_load(&p->mapped);
        if (!all || !hold(&all[number - 1], serial))
            return NULL;
    }
    *bytes = all[number - 1].bytes;
    if (all[number - 1].at)
        return all[number - 1].at;
    hca_mapped_let_go(p, number);
    return NULL;
}

void hca_mapped_let_go(struct hca_peer *p, uint32_t number)
{
    /* Release: pairs with forget(), after which it is unmapped. */
    atomic_fetch_sub_explicit(&atomic_load_explicit(&p->mapped, memory_order_relaxed)[number - 1].users, 1,
                              memory_order_release);
}
