/* Ports of the connection manager. An identifier owns its address and port by the name of its socket (abstract), which
 * holds the address; so two addresses have each port for themselves, and the kernel gives a port back with its process.
 * Which names exclude each other is decided as Linux does (drivers/infiniband/core/cma.c, cma_check_port): under a
 * lock, by looking which names are taken. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "cm.h"
#include "fabric.h"

/* Where free ports are looked for: what the kernel gives out by default. */
#define FIRST_FREE 32768u
#define FREE_PORTS 28232u
/* Identifiers that share an address and a port by RDMA_OPTION_ID_REUSEADDR. */
#define MOST_SHARED 64u

/* ---- names ---- */

/* Family, 'o' where it is for that family only, the address, and which of those that share it. */
static void name_of(uint32_t space, uint32_t port, const struct cm_claim *c, struct sockaddr_un *a, socklen_t *n)
{
    const bool v4 = c->at.any.sa_family == AF_INET;
    const unsigned char *bytes =
        v4 ? (const unsigned char *)&c->at.v4.sin_addr : (const unsigned char *)&c->at.v6.sin6_addr;
    char owner[48];
    int length = snprintf(owner, sizeof owner, "%c%c", v4 ? '4' : '6', c->afonly ? 'o' : 'b');
    for (int i = 0; i < (v4 ? 4 : 16); i++)
        length += snprintf(owner + length, sizeof owner - (size_t)length, "%02x", bytes[i]);
    (void)snprintf(owner + length, sizeof owner - (size_t)length, "-%u", c->shared);
    hca_manager_name(space, port, owner, a, n);
}

/* The reverse, of what stands behind the port. False: it is no owner's name. */
static bool parse(const char *owner, struct cm_claim *c)
{
    unsigned char *bytes;
    char *end;
    memset(c, 0, sizeof *c);
    if ((owner[0] != '4' && owner[0] != '6') || (owner[1] != 'o' && owner[1] != 'b'))
        return false;
    const bool v4 = owner[0] == '4';
    c->afonly = owner[1] == 'o';
    c->at.any.sa_family = v4 ? AF_INET : AF_INET6;
    bytes = v4 ? (unsigned char *)&c->at.v4.sin_addr : (unsigned char *)&c->at.v6.sin6_addr;
    owner += 2;
    for (int i = 0; i < (v4 ? 4 : 16); i++, owner += 2) {
        char byte[3] = {owner[0]};
        if (owner[0])
            byte[1] = owner[1];
        bytes[i] = (unsigned char)strtoul(byte, &end, 16);
        if (end != byte + 2)
            return false;
    }
    if (*owner != '-')
        return false;
    c->shared = (uint32_t)strtoul(owner + 1, &end, 10);
    return end != owner + 1 && (*end == '\n' || !*end);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int take(int fd, uint32_t space, uint32_t port, const struct cm_claim *c)
{
    struct sockaddr_un a;
    socklen_t n;
    name_of(space, port, c, &a, &n);
    return bind(fd, (struct sockaddr *)&a, n) ? errno : 0;
}

static bool is_taken(uint32_t space, uint32_t port, const struct cm_claim *c)
{
    const int fd = new_socket();
    if (fd < 0)
        return false;
    const bool taken = take(fd, space, port, c) == EADDRINUSE;
    close(fd);
    return taken;
}

/* ---- which exclude each other ---- */

static int conflict(const struct cm_claim *mine, const struct cm_claim *theirs)
{
    if (mine->shared && theirs->shared)
        return 0;
    if (mine->afonly && theirs->afonly && mine->at.any.sa_family != theirs->at.any.sa_family)
        return 0;
    if (cm_is_any(&mine->at) || cm_is_any(&theirs->at))
        return EADDRNOTAVAIL;
    return cm_same_host(&mine->at, &theirs->at) ? EADDRINUSE : 0;
}

static bool is_same(const struct cm_claim *a, const struct cm_claim *b)
{
    return cm_same_host(&a->at, &b->at) && a->afonly == b->afonly && a->shared == b->shared;
}

/* Against owners whose names can be guessed: of the same address, and of all addresses. `but`: an owner that does not
 * count; NULL: all do. */
static int against_likely(uint32_t space, uint32_t port, const struct cm_claim *mine, const struct cm_claim *but)
{
    struct cm_claim theirs[12] = {0};
    for (unsigned i = 0; i < 12; i++) {
        if (i < 4)
            theirs[i].at = mine->at;
        else
            theirs[i].at.any.sa_family = i < 8 ? AF_INET : AF_INET6;
        theirs[i].afonly = i % 2;
        theirs[i].shared = i / 2 % 2;
    }
    for (int i = 0; i < 12; i++) {
        const int error = conflict(mine, &theirs[i]);
        if (error && !(but && is_same(&theirs[i], but)) && is_taken(space, port, &theirs[i]))
            return error;
    }
    return 0;
}

/* Against all owners of the port, by the kernel's list of sockets. Accepted ones stand there under their listener's
 * name, also when that has gone, so each name is tried. */
static int against_all(uint32_t space, uint32_t port, const struct cm_claim *mine, const struct cm_claim *but)
{
    struct cm_claim theirs;
    struct sockaddr_un a;
    socklen_t n;
    char *line = NULL;
    size_t room = 0;
    int error = 0;
    FILE *f = fopen("/proc/net/unix", "re");
    hca_manager_name(space, port, "", &a, &n);
    a.sun_path[0] = '@'; /* as the list shows the byte that makes a name abstract */
    while (f && !error && getline(&line, &room, f) > 0) {
        const char *owner = strstr(line, a.sun_path);
        if (!owner || !parse(owner + strlen(a.sun_path), &theirs) || (but && is_same(&theirs, but)))
            continue;
        error = conflict(mine, &theirs);
        if (error && !is_taken(space, port, &theirs))
            error = 0;
    }
    free(line);
    if (f)
        (void)fclose(f);
    return error;
}

/* ---- the lock ---- */

static int locked = -1; /* under cm_lock */

/* A name that one process has at a time. It is held for some system calls; who is stopped meanwhile holds up the others
 * for a second. */
static void lock(uint32_t space)
{
    const struct timespec pause = {0, 100000};
    const uint64_t begin = hca_now_ns();
    struct sockaddr_un a;
    socklen_t n;
    hca_manager_name(space, 0, "lock", &a, &n);
    locked = new_socket();
    for (int i = 0; locked >= 0 && bind(locked, (struct sockaddr *)&a, n) && errno == EADDRINUSE; i++) {
        if (hca_now_ns() - begin > 1000000000u)
            return;
        if (i < 100)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

static void unlock(void)
{
    if (locked >= 0)
        close(locked);
    locked = -1;
}

void cm_in_child(void)
{
    pthread_mutex_init(&cm_lock, NULL);
    unlock(); /* the parent's, if it was forked just then */
}

/* ---- taking ---- */

static int take_one(int fd, uint32_t space, uint32_t port, struct cm_claim *c, const struct cm_claim *but)
{
    int error = against_likely(space, port, c, but);
    if (!error)
        error = against_all(space, port, c, but);
    if (error)
        return error;
    if (!c->shared)
        return take(fd, space, port, c);
    for (c->shared = 1; c->shared <= MOST_SHARED; c->shared++) {
        error = take(fd, space, port, c);
        if (error != EADDRINUSE)
            break;
    }
    return error;
}

/* A port that nobody has. The list of all sockets is dear where there are many: of one address, which is what each end
 * that connects takes, only likely owners count. */
static int take_any(int fd, uint32_t space, uint32_t *port, struct cm_claim *c)
{
    static uint32_t next; /* under cm_lock */
    const uint32_t shared = c->shared;
    int error = EADDRNOTAVAIL;
    if (!next)
        next = (uint32_t)getpid() * 131;
    for (uint32_t i = 0; i < FREE_PORTS && (error == EADDRNOTAVAIL || error == EADDRINUSE); i++) {
        *port = FIRST_FREE + next++ % FREE_PORTS;
        c->shared = 0; /* it is the first there; others may come */
        error = against_likely(space, *port, c, NULL);
        if (!error && cm_is_any(&c->at))
            error = against_all(space, *port, c, NULL);
        c->shared = shared;
        if (!error)
            error = take(fd, space, *port, c);
    }
    return error;
}

int cm_bind(struct cm_id *id, union cm_address *at)
{
    struct cm_claim c = {
        .at = *at, .afonly = id->afonly == CM_UNSET ? at->any.sa_family == AF_INET : id->afonly, .shared = id->reuse};
    in_port_t *const in = at->any.sa_family == AF_INET ? &at->v4.sin_port : &at->v6.sin6_port;
    uint32_t port = ntohs(*in);
    const int fd = new_socket();
    if (fd < 0)
        return errno;
    lock(id->space);
    const int error = port ? take_one(fd, id->space, port, &c, NULL) : take_any(fd, id->space, &port, &c);
    unlock();
    if (error) {
        close(fd);
        return error;
    }
    *in = htons((uint16_t)port);
    id->fd = fd;
    id->claim = c;
    return 0;
}

/* Who listens shares with nobody any more, and gets the name by which it is found. */
int cm_own(struct cm_id *id)
{
    if (!id->claim.shared)
        return 0;
    struct cm_claim alone = id->claim;
    const uint32_t port = cm_port_of(&id->here.at);
    alone.shared = 0;
    const int fd = new_socket();
    if (fd < 0)
        return errno;
    lock(id->space);
    const int error = take_one(fd, id->space, port, &alone, &id->claim);
    unlock();
    close(error ? fd : id->fd);
    if (!error) {
        id->fd = fd;
        id->claim = alone;
        id->reuse = false;
    }
    return error;
}

/* ---- finding a listener ---- */

/* Both ends look whose process the other is: nobody else's. */
static int is_allowed(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
        return errno;
    return who.uid == geteuid() ? 0 : ECONNREFUSED;
}

/* At the address itself, or at all addresses: of its family, and of IPv6, which may have those of IPv4, too. */
int cm_connect(const struct cm_id *id)
{
    const union cm_address *to = &id->there.at;
    const uint16_t port = cm_port_of(to);
    struct cm_claim of[5] = {{.at = *to, .afonly = true}, {.at = *to}, {.afonly = true}};
    of[2].at.any.sa_family = of[3].at.any.sa_family = to->any.sa_family;
    of[4].at.any.sa_family = AF_INET6;
    int error = ECONNREFUSED;
    for (int i = 0; i < 5 && error == ECONNREFUSED; i++) {
        struct sockaddr_un a;
        socklen_t n;
        name_of(id->space, port, &of[i], &a, &n);
        error = connect(id->fd, (struct sockaddr *)&a, n) ? errno : is_allowed(id->fd);
    }
    return error;
}
