/* Joining the fabric. A process takes an index by binding the abstract socket of that name: the kernel gives it back
 * when the process ends, however it ends. */
#define _GNU_SOURCE 1
#include "cost.h"
#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct hca_process hca = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .memory_fd = -1,
                          .keys_fd = -1,
                          .listen_fd = -1,
                          .kick_fd = -1,
                          .pagemap_fd = -1};

static int take_index(void)
{
    /* Where we begin to look differs, so that a job's processes do not all try the same names. */
    uint32_t first = (uint32_t)getpid() % (HCA_PROCESSES - 1u);

    for (uint32_t i = 0; i < HCA_PROCESSES - 1u; i++) {
        uint32_t index = 1 + (first + i) % (HCA_PROCESSES - 1u);
        struct sockaddr_un a;
        socklen_t n;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return errno;
        hca_socket_name(index, &a, &n);
        if (bind(fd, (struct sockaddr *)&a, n) == 0) {
            hca.listen_fd = fd;
            hca.index = index;
            return 0;
        }
        close(fd);
        if (errno != EADDRINUSE)
            return errno;
    }
    return EUSERS;
}

static int make_memory(const char *name, uint64_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The table of memory regions, in its place in the segment. Once we have mapped it, nobody else can to write there. */
static int make_keys(void)
{
    const int fixed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    char name[32];

    snprintf(name, sizeof name, HCA_KEYS_NAME, hca.index);
    hca.keys_fd = make_memory(name, HCA_KEYS_SIZE);
    if (hca.keys_fd < 0 || mmap(hca.segment + HCA_AT_MR, HCA_KEYS_SIZE, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_NORESERVE | MAP_FIXED, hca.keys_fd, 0) == MAP_FAILED)
        return errno;
    /* A kernel before 5.1 does not know the seal. */
    if (fcntl(hca.keys_fd, F_ADD_SEALS, fixed | F_SEAL_FUTURE_WRITE) != 0)
        (void)fcntl(hca.keys_fd, F_ADD_SEALS, fixed);
    return 0;
}

static int make_segment(const char **call)
{
    struct hca_header *h;
    int rc;

    *call = "memfd_create";
    hca.memory_fd = make_memory(HCA_MEMORY_NAME, HCA_SIZE);
    if (hca.memory_fd < 0)
        return errno;
    /* Nobody can make it shorter under those who map it. */
    (void)fcntl(hca.memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    *call = "mmap";
    hca.segment = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, hca.memory_fd, 0);
    if (hca.segment == MAP_FAILED) {
        hca.segment = NULL;
        return errno;
    }
    rc = make_keys();
    if (rc != 0)
        return rc;
    h = (struct hca_header *)(void *)hca.segment;
    h->process = hca.index;
    h->pid = getpid();
    snprintf(h->program, sizeof h->program, "%.31s", program_invocation_short_name);
    h->kick = hca_token(hca.kick_fd);
    for (uint32_t d = 0; d < HCA_DEVICES; d++)
        for (uint32_t p = 0; p < HCA_PORTS; p++)
            atomic_store(&h->port[d][p].state, IBV_PORT_ACTIVE);
    h->magic = HCA_MAGIC;
    hca.header = h;
    return 0;
}

static void leave(void)
{
    if (!hca.header || hca.header->pid != getpid())
        return;
    atomic_store(&hca.header->closing, 1);
    hca_tally_write();
}

/* *call: the one that failed. */
static int join(const char **call)
{
    int rc;

    hca_limits_read(&hca.limits);
    *call = "eventfd";
    hca.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (hca.kick_fd < 0)
        return errno;
    *call = "bind";
    rc = take_index();
    if (rc == 0)
        rc = make_segment(call);
    /* Peers copy to and from our memory. Where Yama restricts that to descendants, this allows it; elsewhere it does
     * nothing. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    /* Last: who can connect finds everything there. */
    if (rc == 0 && listen(hca.listen_fd, 4096) != 0) {
        *call = "listen";
        rc = errno;
    }
    if (rc != 0) {
        close(hca.kick_fd);
        if (hca.listen_fd >= 0)
            close(hca.listen_fd);
        if (hca.memory_fd >= 0)
            close(hca.memory_fd);
        if (hca.keys_fd >= 0)
            close(hca.keys_fd);
        if (hca.segment)
            munmap(hca.segment, HCA_SIZE);
        hca.segment = NULL;
        hca.header = NULL;
        hca.listen_fd = hca.memory_fd = hca.keys_fd = hca.kick_fd = -1;
        return rc;
    }
    hca.pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    (void)atexit(leave);
    return 0;
}

static void in_child(void)
{
    /* The child is no process of the fabric: it may make its own devices, and must not touch its parent's. */
    int fds[] = {hca.listen_fd, hca.memory_fd, hca.keys_fd, hca.kick_fd, hca.pagemap_fd};

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    hca_files_in_child();
    memset(hca.peer, 0, sizeof hca.peer);
    memset(hca.qp, 0, hca.top_qp * sizeof hca.qp[0]);
    memset(hca.cqs_of, 0, hca.top_qp * sizeof hca.cqs_of[0]);
    memset(hca.cq, 0, hca.top_cq * sizeof hca.cq[0]);
    memset(hca.srq, 0, hca.top_srq * sizeof hca.srq[0]);
    memset(hca.mr, 0, hca.top_mr * sizeof hca.mr[0]);
    atomic_store(&hca.top_qp, 0);
    atomic_store(&hca.top_cq, 0);
    atomic_store(&hca.top_srq, 0);
    atomic_store(&hca.top_mr, 0);
    atomic_store(&hca.bytes_registered, 0);
    for (uint32_t d = 0; d < HCA_DEVICES; d++)
        atomic_store(&hca.device_gone[d], false);
    hca.segment = NULL;
    hca.header = NULL;
    hca.listen_fd = hca.memory_fd = hca.keys_fd = hca.kick_fd = hca.pagemap_fd = -1;
    pthread_mutex_init(&hca.lock, NULL);
    hca_peers_in_child();
    cm_in_child();
    hca_engine_in_child();
    hca_costs_in_child();
}

int hca_start(void)
{
    static bool forks_known;
    const char *call = NULL;
    int rc = 0;

    pthread_mutex_lock(&hca.lock);
    if (!hca.segment) {
        rc = join(&call);
        if (rc == 0 && !forks_known)
            forks_known = pthread_atfork(NULL, NULL, in_child) == 0;
        if (rc != 0)
            fprintf(stderr, "softhca: cannot join the fabric: %s: %s\n", call, strerror(rc));
    }
    pthread_mutex_unlock(&hca.lock);
    return rc;
}

/* ---- locks ---- */

/* Looks at a holder now and then; false: it is not waited for any longer. A holder that has died, or that is none,
 * lets go of the lock here. A process that lives, ours not least, may have been written there by a broken one. */
static bool holder_goes_on(struct hca_peer *of, _Atomic(uint32_t) *lock, uint32_t holder, struct hca_patience *w)
{
    struct hca_peer *p = hca_peer_get(holder);
    const bool first = w->of != p;

    if (!p || (holder != hca.index && hca_peer_dead(p))) {
        (void)atomic_compare_exchange_strong(lock, &holder, 0);
        return true;
    }
    if (!hca_patience_over(p, w) && (first || !atomic_load(&of->stuck)))
        return true;
    atomic_store(&of->stuck, true);
    return false;
}

bool hca_shared_lock(struct hca_peer *of, _Atomic(uint32_t) *lock, uint32_t patience)
{
    struct hca_patience w = {0};

    for (uint32_t spins = 1;; spins++) {
        uint32_t holder = 0;
        if (atomic_compare_exchange_strong_explicit(lock, &holder, hca.index, memory_order_acquire,
                                                    memory_order_relaxed))
            return true;
        if (spins % 4096 == 0 && !holder_goes_on(of, lock, holder, &w))
            return false;
        if (spins > patience && spins % 64 == 0)
            sched_yield();
    }
}

void hca_shared_unlock(_Atomic(uint32_t) *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}
