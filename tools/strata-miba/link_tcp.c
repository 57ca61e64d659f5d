/* The link over TCP: listening, connecting, noticing a host that is gone. */
#include "config.h"
#include "link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <fcntl.h>
#include <unistd.h>
#include "stats.h"

static struct addrinfo *addresses(const char *host, const char *port, struct miba_why *why)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
    struct addrinfo *list = NULL;
    const int error = getaddrinfo(host, port, &hints, &list);

    if (error)
        miba_fail(why, MIBA_BROKEN, "%s port %s: %s", host ? host : "this machine", port, gai_strerror(error));
    return error ? NULL : list;
}

/* No delay; a host that is gone is noticed after a few seconds, though nothing is sent. */
static int tuned(int fd)
{
    const int one = 1, seconds = 2, most_ms = 4000;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    return fd;
}

static int listener(const char *port, struct miba_why *why)
{
    struct addrinfo *list = addresses(NULL, port, why);
    const int one = 1;
    int fd = -1, error = 0;

    if (!list)
        return -1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (fd >= 0 && (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 1))) {
            error = errno;
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0)
        miba_fail(why, MIBA_BROKEN, "port %s of this machine: cannot listen: %s", port,
                  strerror(error ? error : errno));
    return fd;
}

int link_serve(const char *port, struct miba_why *why)
{
    const int fd = listener(port, why);
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    char number[NI_MAXSERV];

    if (fd < 0)
        return -1;
    if (getsockname(fd, (struct sockaddr *)&at, &size) == 0 &&
        getnameinfo((struct sockaddr *)&at, size, NULL, 0, number, sizeof number, NI_NUMERICSERV) == 0)
        fprintf(stderr, "strata-miba: the server waits for a client at port %s\n", number);
    int client;
    do
        client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    while (client < 0 && errno == EINTR);
    if (client < 0)
        miba_fail(why, MIBA_BROKEN, "port %s: no client can be accepted: %s", port, strerror(errno));
    close(fd);
    return client < 0 ? -1 : tuned(client);
}

static const void *host_of(const struct sockaddr_storage *a, size_t *size)
{
    *size = a->ss_family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    return a->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)a)->sin_addr
                                   : (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr;
}

bool link_is_here(const struct link *l)
{
    struct sockaddr_storage own = {0}, theirs = {0};
    socklen_t n = sizeof own, k = sizeof theirs;
    size_t size, same;

    if (getsockname(l->fd, (struct sockaddr *)&own, &n) || getpeername(l->fd, (struct sockaddr *)&theirs, &k))
        return false;
    if (own.ss_family == AF_UNIX)
        return true;
    const void *a = host_of(&own, &size), *b = host_of(&theirs, &same);
    return size == same && memcmp(a, b, size) == 0;
}

/* Connects within timeout_ms. 0, or an errno value. */
static int connect_in_time(int fd, const struct addrinfo *a, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    if (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)
        return errno;
    if (poll(&p, 1, timeout_ms) <= 0)
        return ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
        return errno;
    fcntl(fd, F_SETFL, 0);
    return error;
}

int link_connect(const char *host, const char *port, int timeout_s, struct miba_why *why)
{
    struct addrinfo *list = addresses(host, port, why);
    int fd = -1, error = 0, left = 0;

    if (!list)
        return -1;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        left++;
    /* The time-out is for all addresses: each may take its share of what is left. */
    const uint64_t end = miba_now() + (uint64_t)timeout_s * 1000000000u;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next, left--) {
        const uint64_t now = miba_now();
        const int share_ms = now < end ? (int)((end - now) / 1000000u) / left : 0;
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        error = fd < 0 ? errno : connect_in_time(fd, a, share_ms);
        if (error && fd >= 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0)
        miba_fail(why, MIBA_BROKEN, "no server at %s port %s: %s", host, port, strerror(error));
    return fd < 0 ? -1 : tuned(fd);
}
