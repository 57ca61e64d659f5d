/* Attaching to the fabric's other processes. Whoever wants to reach index i connects to its socket, learns the pid from
 * SO_PEERCRED, and maps the memfd that it finds in /proc/PID/fd; the owner has to do nothing. */
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
#include <linux/futex.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int hca_call(uint32_t index, pid_t *pid)
{
    struct sockaddr_un a;
    struct ucred cred = {.pid = 0};
    socklen_t n, size = sizeof cred;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;

    if (fd < 0)
        return -1;
    hca_socket_name(index, &a, &n);
    if (connect(fd, (struct sockaddr *)&a, n) != 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0)
        error = errno;
    else if (cred.uid != geteuid())
        error = EACCES;
    if (error) {
        close(fd);
        errno = error;
        return -1;
    }
    *pid = cred.pid;
    return fd;
}

int hca_memory_open(const char *path, int how, struct stat *st)
{
    int fd = open(path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct statfs fs;
    int seals;

    if (fd < 0)
        return -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
        (seals = fcntl(fd, F_GET_SEALS)) >= 0 && (seals & F_SEAL_SHRINK))
        return fd;
    close(fd);
    return -1;
}

static int open_memory(const char *path, int how, uint64_t bytes)
{
    struct stat st;
    int fd = hca_memory_open(path, how, &st);

    if (fd < 0 || (uint64_t)st.st_size == bytes)
        return fd;
    close(fd);
    return -1;
}

static char *map_if_ours(const char *path, uint32_t index)
{
    const struct hca_header *h;
    char *at;
    int fd = open_memory(path, O_RDWR, HCA_SIZE);

    if (fd < 0)
        return NULL;
    at = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    h = (const struct hca_header *)(const void *)at;
    if (h->magic == HCA_MAGIC && h->process == index)
        return at;
    munmap(at, HCA_SIZE);
    return NULL;
}

/* What the link of a memfd of that name reads. */
static bool is_named(const char *target, const char *name)
{
    static const char prefix[] = "/memfd:";
    size_t n = strlen(name);

    return strncmp(target, prefix, sizeof prefix - 1) == 0 && strncmp(target + sizeof prefix - 1, name, n) == 0 &&
           target[sizeof prefix - 1 + n] == ' ';
}

/* Takes one of a process's descriptors if it is the segment, or its table of memory regions. */
static void look_at(pid_t pid, const char *fd, uint32_t index, char **at, int *keys)
{
    char path[400], target[64], name[32];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, fd);
    snprintf(name, sizeof name, HCA_KEYS_NAME, index);
    n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    if (!*at && is_named(target, HCA_MEMORY_NAME))
        *at = map_if_ours(path, index);
    else if (*keys < 0 && is_named(target, name))
        *keys = open_memory(path, O_RDONLY, HCA_KEYS_SIZE);
}

/* The segment among a process's descriptors, and over it the table of memory regions. Processes of one program have
 * them at the same numbers mostly; to list the descriptors is dear when there are hundreds, as with hundreds of peers.
 */
static char *find_segment(pid_t pid, uint32_t index)
{
    const int same[] = {hca.memory_fd, hca.keys_fd};
    char folder[64], number[16];
    struct dirent *e;
    char *at = NULL;
    int keys = -1;
    DIR *d;

    for (size_t i = 0; i < 2; i++) {
        snprintf(number, sizeof number, "%d", same[i]);
        look_at(pid, number, index, &at, &keys);
    }
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    d = at && keys >= 0 ? NULL : opendir(folder);
    while (d && (!at || keys < 0) && (e = readdir(d)) != NULL)
        look_at(pid, e->d_name, index, &at, &keys);
    if (d)
        closedir(d);
    if (at && (keys < 0 || mmap(at + HCA_AT_MR, HCA_KEYS_SIZE, PROT_READ, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, keys,
                                0) == MAP_FAILED)) {
        munmap(at, HCA_SIZE);
        at = NULL;
    }
    if (keys >= 0)
        close(keys);
    return at;
}

/* ---- whether it lives ---- */

/* What stays with the process, and does not become another's with its pid. Kernels before 5.3, valgrind and containers
 * refuse pidfd_open. */
static bool hold(struct hca_peer *p)
{
    char path[32];

    p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (p->pidfd >= 0)
        return true;
    snprintf(path, sizeof path, "/proc/%d", (int)p->pid);
    p->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return p->proc_fd >= 0;
}

static void let_go(struct hca_peer *p)
{
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->proc_fd >= 0)
        close(p->proc_fd);
    p->pidfd = p->proc_fd = -1;
}

/* The process whose folder this is has ended: it is not there any more, or waits to be reaped and has no thread left
 * (its first one alone may end before the others). */
static bool has_ended(int proc_fd)
{
    char text[512], state;
    const char *after;
    long threads;
    ssize_t n;
    int fd = openat(proc_fd, "stat", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || errno == ESRCH;
    n = read(fd, text, sizeof text - 1);
    const int error = errno;
    close(fd);
    if (n <= 0)
        return n < 0 && error == ESRCH;
    text[n] = 0;
    /* The name of the program may have any characters; the state follows it, and 17 fields on the number of threads. */
    after = strrchr(text, ')');
    return after &&
           sscanf(after, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
                  &threads) == 2 &&
           (state == 'X' || (state == 'Z' && threads <= 1));
}

static struct hca_peer *attach(uint32_t index)
{
    struct hca_peer *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->index = index;
    p->pidfd = p->proc_fd = -1;
    if (index == hca.index) {
        p->segment = hca.segment;
        p->pid = getpid();
        return p;
    }
    const int fd = hca_call(index, &p->pid);
    if (fd >= 0 && hold(p))
        p->segment = find_segment(p->pid, index);
    if (fd >= 0)
        close(fd);
    if (p->segment)
        return p;
    let_go(p);
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
    let_go(p);
    hca_mapped_trim(p);
    (void)madvise(p->segment, HCA_AT_MR, MADV_REMOVE);
    (void)madvise(p->segment + HCA_AT_SAID, HCA_SIZE - HCA_AT_SAID, MADV_REMOVE);
    /* Its regions cannot be written; nothing takes their place, which reads as none. */
    (void)mmap(p->segment + HCA_AT_MR, HCA_KEYS_SIZE, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

struct hca_peer *hca_peer_find(uint32_t index)
{
    struct hca_peer *before, *p;

    if (index == 0 || index >= HCA_PROCESSES)
        return NULL;
    before = atomic_load_explicit(&hca.peer[index], memory_order_relaxed);
    if (before && !before->dead)
        return before;
    p = attach(index);
    if (!p)
        return NULL;
    p->before = before;
    atomic_store_explicit(&hca.peer[index], p, memory_order_release);
    if (before)
        bury(before);
    return p;
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
    p = hca_peer_find(index);
    pthread_mutex_unlock(&hca.lock);
    return p;
}

bool hca_peer_dead(struct hca_peer *p)
{
    struct pollfd f = {.events = POLLIN};

    if (p->index == hca.index || p->dead)
        return p->dead;
    f.fd = p->pidfd;
    if (f.fd >= 0 ? poll(&f, 1, 0) > 0 : has_ended(p->proc_fd))
        p->dead = true;
    return p->dead;
}

bool hca_peer_ended(struct hca_peer *p)
{
    const struct hca_header *h = (const struct hca_header *)(const void *)p->segment;
    uint32_t word;

    if (p->index == hca.index)
        return false;
    word = atomic_load_explicit(&h->engine, memory_order_acquire);
    if (word == 0) /* its thread has not begun, or may not say when it ends */
        return hca_peer_dead(p);
    /* In this order: when the segment is emptied, p->dead stands already. */
    if (!(word & FUTEX_OWNER_DIED))
        return atomic_load_explicit(&p->dead, memory_order_relaxed);
    /* The word is where peers write: only the kernel's answer is for good. */
    (void)hca_peer_dead(p);
    return true;
}

/* ---- event descriptors ---- */

/* Tokens of ours that are valid, by descriptor: what stands in the segment may be any number. A lock of its own, under
 * which no other is taken. */
static struct {
    pthread_mutex_t lock;
    uint64_t *of;
    size_t n;
} tokens = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t hca_token(int fd)
{
    static _Atomic(uint32_t) serial;
    uint64_t token = (uint64_t)(atomic_fetch_add(&serial, 1) + 1u) << 32 | (uint32_t)fd;
    size_t at = (size_t)fd;

    pthread_mutex_lock(&tokens.lock);
    if (at >= tokens.n) {
        size_t n = at + 64;
        uint64_t *more = realloc(tokens.of, n * sizeof *more);
        if (more) {
            memset(more + tokens.n, 0, (n - tokens.n) * sizeof *more);
            tokens.of = more;
            tokens.n = n;
        }
    }
    if (at < tokens.n)
        tokens.of[at] = token;
    else
        token = 0;
    pthread_mutex_unlock(&tokens.lock);
    return token;
}

static bool is_ours(uint64_t token)
{
    size_t at = (uint32_t)token;
    bool valid;

    pthread_mutex_lock(&tokens.lock);
    valid = at < tokens.n && tokens.of[at] == token;
    pthread_mutex_unlock(&tokens.lock);
    return valid;
}

void hca_token_end(uint64_t token)
{
    size_t at = (uint32_t)token;

    pthread_mutex_lock(&tokens.lock);
    if (token && at < tokens.n && tokens.of[at] == token)
        tokens.of[at] = 0;
    pthread_mutex_unlock(&tokens.lock);
}

void hca_peers_in_child(void)
{
    pthread_mutex_init(&tokens.lock, NULL);
}

static bool is_eventfd(int fd)
{
    char path[64], target[32];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, target, sizeof target - 1);
    return n > 0 && (target[n] = 0, strcmp(target, "anon_inode:[eventfd]") == 0);
}

/* Where a descriptor of theirs goes among those that we keep. They are for ever new ones when a broken peer makes up
 * the tokens; then the oldest goes. NULL: no memory. */
static struct hca_peer_fd *room_for(struct hca_peer *p)
{
    struct hca_peer_fd *f;

    if (p->n_fds == HCA_PEER_FDS) {
        f = &p->fds[p->oldest_fd++ % HCA_PEER_FDS];
        close(f->ours);
        f->token = 0;
        return f;
    }
    f = realloc(p->fds, (p->n_fds + 1) * sizeof *f);
    if (!f)
        return NULL;
    p->fds = f;
    return &p->fds[p->n_fds++];
}

static int fd_of(struct hca_peer *p, uint64_t token)
{
    struct hca_peer_fd *f;
    int ours;

    for (size_t i = 0; i < p->n_fds; i++)
        if (p->fds[i].token == token)
            return p->fds[i].ours;
    ours = (int)syscall(SYS_pidfd_getfd, p->pidfd, (int)(uint32_t)token, 0);
    if (ours < 0)
        return -1;
    f = is_eventfd(ours) ? room_for(p) : NULL;
    if (!f) {
        close(ours);
        errno = EBADF;
        return -1;
    }
    *f = (struct hca_peer_fd){token, ours};
    return ours;
}

/* Where the kernel does not give us a peer's descriptor, the peer's own thread signals it: asked by its socket, which
 * it reads beside everything else. Bounded: one that is stopped, and has thousands of these to read, is not waited for.
 */
static void ask_to_signal(const struct hca_peer *p, uint64_t token)
{
    char line[32];
    pid_t pid = p->pid;
    const int length = snprintf(line, sizeof line, "signal %llx\n", (unsigned long long)token);

    for (int i = 0; i < 1000; i++) {
        const int fd = hca_call(p->index, &pid);
        const bool busy = fd < 0 && errno == EAGAIN;
        bool sent = false;
        if (fd >= 0) {
            sent = pid == p->pid && send(fd, line, (size_t)length, MSG_NOSIGNAL) == length;
            close(fd);
        }
        if (sent || (fd < 0 && !busy) || pid != p->pid)
            return;
        sched_yield();
    }
}

/* A counter that is full is readable anyway, and writing to it would wait. */
static void add_one(int fd)
{
    const uint64_t one = 1;
    struct pollfd f = {.fd = fd, .events = POLLOUT};

    if (poll(&f, 1, 0) > 0 && write(fd, &one, sizeof one) < 0)
        return;
}

void hca_signal_here(uint64_t token)
{
    if (is_ours(token))
        add_one((int)(uint32_t)token);
}

void hca_peer_signal(struct hca_peer *p, uint64_t token)
{
    bool refused;
    int fd = -1;

    if (token == 0)
        return;
    if (p->index == hca.index) {
        hca_signal_here(token);
        return;
    }
    pthread_mutex_lock(&hca.lock);
    refused = p->proc_fd >= 0;
    if (p->pidfd >= 0) {
        fd = fd_of(p, token);
        refused = fd < 0 && (errno == ENOSYS || errno == EPERM);
    }
    /* Under the lock: another thread may give up the descriptor. */
    if (fd >= 0)
        add_one(fd);
    pthread_mutex_unlock(&hca.lock);
    if (refused)
        ask_to_signal(p, token);
}
