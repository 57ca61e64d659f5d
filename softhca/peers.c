/* Attaching to the fabric's other processes. Whoever wants to reach index i connects to its socket, learns the pid from
 * SO_PEERCRED, and maps the memfd that it finds in /proc/PID/fd; the owner has to do nothing. */
#define _GNU_SOURCE 1
#include "hca.h"
#include "fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static char *map_if_segment(pid_t pid, const char *fd, uint32_t index)
{
    char path[400], target[64];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, fd);
    n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return NULL;
    target[n] = 0;
    return strncmp(target, "/memfd:" HCA_MEMORY_NAME " ", sizeof "/memfd:" HCA_MEMORY_NAME) == 0
               ? map_if_ours(path, index)
               : NULL;
}

/* The segment among a process's descriptors. Processes of one program have it at the same number mostly; to list the
 * descriptors is dear when there are hundreds, as with hundreds of peers. */
static char *find_segment(pid_t pid, uint32_t index)
{
    char folder[64], same[16];
    struct dirent *e;
    char *at;
    DIR *d;

    snprintf(same, sizeof same, "%d", hca.memory_fd);
    at = map_if_segment(pid, same, index);
    if (at)
        return at;
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    d = opendir(folder);
    while (d && !at && (e = readdir(d)) != NULL)
        at = map_if_segment(pid, e->d_name, index);
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

/* A process that has ended gives back its descriptors and its memory. Its mapping and its struct stay, empty: another
 * thread may be looking at them. */
static void bury(struct hca_peer *p)
{
    for (size_t i = 0; i < p->n_fds; i++)
        close(p->fds[i].ours);
    free(p->fds);
    p->fds = NULL;
    p->n_fds = 0;
    close(p->pidfd);
    p->pidfd = -1;
    (void)madvise(p->segment, HCA_SIZE, MADV_REMOVE);
}

struct hca_peer *hca_peer_get(uint32_t index)
{
    struct hca_peer *p;

    if (index == 0 || index >= HCA_PROCESSES)
        return NULL;
    p = atomic_load_explicit(&hca.peer[index], memory_order_acquire);
    if (p && !atomic_load_explicit(&p->dead, memory_order_relaxed))
        return p;
    pthread_mutex_lock(&hca.lock);
    p = atomic_load_explicit(&hca.peer[index], memory_order_relaxed);
    if (!p || p->dead) {
        struct hca_peer *before = p;
        p = attach(index);
        if (p) {
            p->before = before;
            atomic_store_explicit(&hca.peer[index], p, memory_order_release);
            if (before)
                bury(before);
        }
    }
    pthread_mutex_unlock(&hca.lock);
    return p;
}

bool hca_peer_dead(struct hca_peer *p)
{
    struct pollfd f = {.events = POLLIN};

    if (p->index == hca.index || p->dead)
        return p->dead;
    f.fd = p->pidfd;
    if (poll(&f, 1, 0) > 0)
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
    if (p->index != hca.index) {
        pthread_mutex_lock(&hca.lock);
        fd = p->pidfd >= 0 ? fd_of(p, token) : -1;
        pthread_mutex_unlock(&hca.lock);
    }
    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        return; /* full: it is readable anyway */
}
