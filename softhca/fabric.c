/* Joining the fabric and attaching to its processes.
 *
 * A process takes an index by binding the abstract socket of that name: the kernel gives it back when the process ends,
 * however it ends. Whoever wants to reach index i connects there, learns the pid from SO_PEERCRED, and maps the memfd
 * that it finds in /proc/PID/fd; the owner has to do nothing. */
#define _GNU_SOURCE 1
#include "hca.h"
#include "fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hca_process hca = {.lock = PTHREAD_MUTEX_INITIALIZER, .memory_fd = -1, .listen_fd = -1, .kick_fd = -1};

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

static int make_segment(void)
{
    struct hca_header *h;

    hca.memory_fd = memfd_create(HCA_MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (hca.memory_fd < 0 || ftruncate(hca.memory_fd, (off_t)HCA_SIZE) != 0)
        return errno;
    /* Nobody can make it shorter under those who map it. */
    (void)fcntl(hca.memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    hca.segment = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, hca.memory_fd, 0);
    if (hca.segment == MAP_FAILED) {
        hca.segment = NULL;
        return errno;
    }
    h = hca.header = (struct hca_header *)(void *)hca.segment;
    h->process = hca.index;
    h->pid = getpid();
    snprintf(h->program, sizeof h->program, "%.31s", program_invocation_short_name);
    h->kick = hca_token(hca.kick_fd);
    for (uint32_t d = 0; d < HCA_DEVICES; d++)
        for (uint32_t p = 0; p < HCA_PORTS; p++)
            atomic_store(&h->port[d][p].state, IBV_PORT_ACTIVE);
    h->magic = HCA_MAGIC;
    return 0;
}

static void leave(void)
{
    if (hca.header && hca.header->pid == getpid())
        atomic_store(&hca.header->closing, 1);
}

static int join(void)
{
    int rc;

    hca_limits_read(&hca.limits);
    hca.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (hca.kick_fd < 0)
        return errno;
    rc = take_index();
    if (rc == 0)
        rc = make_segment();
    /* Peers copy to and from our memory. Where Yama restricts that to descendants, this allows it; elsewhere it does
     * nothing. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    /* Last: who can connect finds everything there. */
    if (rc == 0 && listen(hca.listen_fd, 4096) != 0)
        rc = errno;
    if (rc != 0) {
        close(hca.kick_fd);
        if (hca.listen_fd >= 0)
            close(hca.listen_fd);
        if (hca.memory_fd >= 0)
            close(hca.memory_fd);
        if (hca.segment)
            munmap(hca.segment, HCA_SIZE);
        hca.segment = NULL;
        hca.listen_fd = hca.memory_fd = hca.kick_fd = -1;
        return rc;
    }
    (void)atexit(leave);
    return 0;
}

static void in_child(void)
{
    /* The child is no process of the fabric: it may make its own devices, and must not touch its parent's. */
    int fds[] = {hca.listen_fd, hca.memory_fd, hca.kick_fd};

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    memset(hca.peer, 0, sizeof hca.peer);
    hca.segment = NULL;
    hca.header = NULL;
    hca.listen_fd = hca.memory_fd = hca.kick_fd = -1;
    pthread_mutex_init(&hca.lock, NULL);
    hca_engine_in_child();
}

int hca_start(void)
{
    static bool forks_known;
    int rc = 0;

    pthread_mutex_lock(&hca.lock);
    if (!hca.segment) {
        rc = join();
        if (rc == 0 && !forks_known)
            forks_known = pthread_atfork(NULL, NULL, in_child) == 0;
        if (rc != 0)
            fprintf(stderr, "softhca: cannot join the fabric: %s\n", strerror(rc));
    }
    pthread_mutex_unlock(&hca.lock);
    return rc;
}

/* ---- peers ---- */

static int pid_of(uint32_t index, pid_t *pid)
{
    struct sockaddr_un a;
    struct ucred cred;
    socklen_t n, size = sizeof cred;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;

    if (fd < 0)
        return errno;
    hca_socket_name(index, &a, &n);
    if (connect(fd, (struct sockaddr *)&a, n) != 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0)
        rc = errno;
    else if (cred.uid != geteuid())
        rc = EACCES;
    else
        *pid = cred.pid;
    close(fd);
    return rc;
}

static char *map_if_ours(const char *path, uint32_t index)
{
    struct stat st;
    struct hca_header *h;
    char *at;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != HCA_SIZE) {
        close(fd);
        return NULL;
    }
    at = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    h = (struct hca_header *)(void *)at;
    if (h->magic == HCA_MAGIC && h->process == index)
        return at;
    munmap(at, HCA_SIZE);
    return NULL;
}

/* The segment among a process's descriptors. */
static char *find_segment(pid_t pid, uint32_t index)
{
    char folder[64], path[400], target[64];
    struct dirent *e;
    char *at = NULL;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    d = opendir(folder);
    while (d && !at && (e = readdir(d)) != NULL) {
        ssize_t n;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        n = readlink(path, target, sizeof target - 1);
        if (n > 0 &&
            (target[n] = 0, strncmp(target, "/memfd:" HCA_MEMORY_NAME " ", sizeof "/memfd:" HCA_MEMORY_NAME) == 0))
            at = map_if_ours(path, index);
    }
    if (d)
        closedir(d);
    return at;
}

static struct hca_peer *attach(uint32_t index)
{
    struct hca_peer *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->index = index;
    p->pidfd = -1;
    if (index == hca.index) {
        p->segment = hca.segment;
        p->pid = getpid();
        return p;
    }
    if (pid_of(index, &p->pid) == 0)
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (p->pidfd >= 0)
        p->segment = find_segment(p->pid, index);
    if (p->segment)
        return p;
    if (p->pidfd >= 0)
        close(p->pidfd);
    free(p);
    return NULL;
}

struct hca_peer *hca_peer_get(uint32_t index)
{
    struct hca_peer *p;

    if (index == 0 || index >= HCA_PROCESSES)
        return NULL;
    p = atomic_load_explicit(&hca.peer[index], memory_order_acquire);
    if (p && !p->dead)
        return p;
    pthread_mutex_lock(&hca.lock);
    p = atomic_load_explicit(&hca.peer[index], memory_order_relaxed);
    if (!p || p->dead) {
        /* A dead one stays mapped: another thread may be looking at it. */
        p = attach(index);
        if (p)
            atomic_store_explicit(&hca.peer[index], p, memory_order_release);
    }
    pthread_mutex_unlock(&hca.lock);
    return p;
}

bool hca_peer_dead(struct hca_peer *p)
{
    struct pollfd f = {.fd = p->pidfd, .events = POLLIN};

    if (p->pidfd < 0)
        return false;
    if (!p->dead && poll(&f, 1, 0) > 0)
        p->dead = true;
    return p->dead;
}

/* ---- event descriptors ---- */

uint64_t hca_token(int fd)
{
    static _Atomic(uint32_t) serial;

    return (uint64_t)(atomic_fetch_add(&serial, 1) + 1u) << 32 | (uint32_t)fd;
}

static bool is_eventfd(int fd)
{
    char path[64], target[32];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, target, sizeof target - 1);
    return n > 0 && (target[n] = 0, strcmp(target, "anon_inode:[eventfd]") == 0);
}

static int fd_of(struct hca_peer *p, uint64_t token)
{
    struct hca_peer_fd *more;
    int ours;

    for (size_t i = 0; i < p->n_fds; i++)
        if (p->fds[i].token == token)
            return p->fds[i].ours;
    ours = (int)syscall(SYS_pidfd_getfd, p->pidfd, (int)(uint32_t)token, 0);
    if (ours < 0)
        return -1;
    more = is_eventfd(ours) ? realloc(p->fds, (p->n_fds + 1) * sizeof *more) : NULL;
    if (!more) {
        close(ours);
        return -1;
    }
    more[p->n_fds++] = (struct hca_peer_fd){token, ours};
    p->fds = more;
    return ours;
}

void hca_peer_signal(struct hca_peer *p, uint64_t token)
{
    const uint64_t one = 1;
    int fd = (int)(uint32_t)token;

    if (token == 0)
        return;
    if (p->pidfd >= 0) {
        pthread_mutex_lock(&hca.lock);
        fd = fd_of(p, token);
        pthread_mutex_unlock(&hca.lock);
    }
    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        return; /* full: it is readable anyway */
}

/* ---- locks ---- */

void hca_shared_lock(_Atomic(uint32_t) *lock)
{
    for (uint32_t spins = 1;; spins++) {
        uint32_t holder = 0;
        if (atomic_compare_exchange_strong_explicit(lock, &holder, hca.index, memory_order_acquire,
                                                    memory_order_relaxed))
            return;
        if (spins % 4096 == 0) {
            struct hca_peer *p = holder == hca.index ? NULL : hca_peer_get(holder);
            /* Held by one that has died, or by none that could hold it. */
            if (holder != hca.index && (!p || hca_peer_dead(p)))
                (void)atomic_compare_exchange_strong(lock, &holder, 0);
        }
        if (spins % 64 == 0)
            sched_yield();
    }
}

void hca_shared_unlock(_Atomic(uint32_t) *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}
