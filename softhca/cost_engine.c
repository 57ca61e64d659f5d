/* The engine that all processes of a device have together, `engine=1`: one message after the other is carried out. A
 * lock of one process's segment, its host's; who that is, the name of a socket says, which one process only can have,
 * and which the kernel takes back when that ends. Then who finds out becomes the next host, or finds it. Until all have
 * found out there may be two, for the moment of a look at the host. */
#define _GNU_SOURCE 1
#include "cost.h"
#include "fabric.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* Turns in which who waits for the engine keeps its processor: about as long as a message of some ten microseconds
 * holds it. Who gave it away at once would lose a turn of the scheduler for each message, where others run there. */
#define PATIENCE 4096u

/* ns; more is no message of another clock: other namespaces of time, or a broken process. */
#define BUSY_MOST 1000000000u

#define NAME 0u /* the index that is no process's */

static struct {
    pthread_mutex_t lock; /* looking for the host */
    _Atomic(struct hca_peer *) host;
    _Atomic(int) fd;             /* of the name, when we are it; -1 */
    _Atomic(uint64_t) not_until; /* ns: nobody was found, which takes time */
} serial = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
static _Atomic(uint32_t) last_qpn[HCA_DEVICES]; /* of our own engines */

static struct hca_serial *of_host(struct hca_peer *host, uint32_t device)
{
    return &((struct hca_header *)(void *)host->segment)->serial[device];
}

/* ---- who the host is ---- */

/* 0, or an errno: EADDRINUSE, another one is. */
static int become_host(void)
{
    const uint64_t one = 1;
    struct sockaddr_un a;
    socklen_t n;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    hca_socket_name(NAME, &a, &n);
    if (bind(fd, (struct sockaddr *)&a, n) || listen(fd, 1024)) {
        const int error = errno;
        close(fd);
        return error;
    }
    atomic_store(&serial.fd, fd);
    if (write(hca.kick_fd, &one, sizeof one) < 0)
        return 0; /* the thread looks at the descriptor later */
    return 0;
}

/* The process of the fabric with this pid; processes take the first index that is free from one that follows from it.
 */
static struct hca_peer *with_pid(pid_t pid)
{
    const uint32_t most = HCA_PROCESSES - 1u, first = (uint32_t)pid % most;

    for (uint32_t i = 0; i < most; i++) {
        struct hca_peer *p = hca_peer_get(1 + (first + i) % most);
        if (p && p->pid == pid)
            return p;
    }
    return NULL;
}

static bool ended(struct hca_peer *p)
{
    return p->index != hca.index && hca_peer_ended(p);
}

/* Under serial.lock. Bounded: a host that has bound the name and does not listen yet soon does. */
static struct hca_peer *find_host(void)
{
    const struct timespec pause = {0, 100000};

    for (int i = 0; i < 50; i++) {
        struct hca_peer *p = NULL;
        pid_t pid;
        if (become_host() == 0)
            return hca_peer_get(hca.index);
        const int fd = hca_call(NAME, &pid);
        if (fd >= 0) {
            p = with_pid(pid);
            close(fd);
        }
        if (p && !ended(p))
            return p;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static struct hca_peer *another_host(void)
{
    struct hca_peer *p;

    if (hca_now_ns() < atomic_load(&serial.not_until))
        return NULL;
    pthread_mutex_lock(&serial.lock);
    p = atomic_load(&serial.host);
    if (!p || ended(p)) {
        p = find_host();
        atomic_store(&serial.host, p);
        if (!p)
            atomic_store(&serial.not_until, hca_now_ns() + 1000000000u);
    }
    pthread_mutex_unlock(&serial.lock);
    return p;
}

int hca_serial_fd(void)
{
    return atomic_load_explicit(&serial.fd, memory_order_relaxed);
}

/* They have seen who we are, and are gone. Bounded: the rest makes the descriptor readable again. */
void hca_serial_serve(void)
{
    for (int i = 0; i < 64; i++) {
        const int fd = accept4(atomic_load(&serial.fd), NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        close(fd);
    }
}

void hca_serial_in_child(void)
{
    const int fd = atomic_exchange(&serial.fd, -1);

    if (fd >= 0)
        close(fd);
    pthread_mutex_init(&serial.lock, NULL);
    atomic_store(&serial.host, NULL);
    atomic_store(&serial.not_until, 0);
    for (uint32_t i = 0; i < HCA_DEVICES; i++)
        atomic_store(&last_qpn[i], 0);
}

/* ---- having it ---- */

struct hca_peer *hca_serial_enter(uint32_t device)
{
    for (int i = 0; i < 3; i++) {
        struct hca_peer *p = atomic_load(&serial.host);
        if ((!p || ended(p)) && !(p = another_host()))
            return NULL;
        /* A holder that has died lets go of it here; who lives and does not is not waited for for ever. */
        if (!hca_shared_lock(p, &of_host(p, device)->lock, PATIENCE))
            return NULL;
        if (!ended(p))
            return p;
        hca_serial_leave(p, device);
    }
    return NULL;
}

void hca_serial_leave(struct hca_peer *host, uint32_t device)
{
    struct hca_serial *s = of_host(host, device);

    atomic_store_explicit(&s->free_at, hca_now_ns(), memory_order_relaxed);
    hca_shared_unlock(&s->lock);
}

uint64_t hca_serial_busy_ns(struct hca_peer *host, uint32_t device)
{
    const uint64_t free_at = atomic_load_explicit(&of_host(host, device)->free_at, memory_order_relaxed);
    const uint64_t now = hca_now_ns(), busy = free_at > now ? free_at - now : 0;

    return busy <= BUSY_MOST ? busy : 0;
}

bool hca_serial_switched(struct hca_peer *host, uint32_t device, uint32_t qpn)
{
    _Atomic(uint32_t) *last = host ? &of_host(host, device)->qpn : &last_qpn[device];
    const uint32_t before = atomic_load_explicit(last, memory_order_relaxed);

    if (before == qpn)
        return false;
    return atomic_exchange_explicit(last, qpn, memory_order_relaxed) != 0;
}
