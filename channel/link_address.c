/* Addresses of links: HOST:PORT, or the path of a socket. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel/link.h"

static int address_path(const strata_channel_link_t *l, const char *address, struct sockaddr_un *at)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(address) >= sizeof(at->sun_path))
        return link_fail(l, STRATA_ERR_ARG, "%s: the path of a socket has at most %zu bytes", address,
                         sizeof(at->sun_path) - 1);
    memcpy(at->sun_path, address, strlen(address));
    return STRATA_OK;
}

/* HOST:PORT to addresses, to be freed by freeaddrinfo. */
static int address_find(const strata_channel_link_t *l, const char *address, bool listen, struct addrinfo **out)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = listen ? AI_PASSIVE : 0};
    char host[LINK_ADDRESS];
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0;

    if (!colon || n >= sizeof(host) || !colon[1] || (n == 0 && !listen))
        return link_fail(l, STRATA_ERR_ARG, "`%s' is no address: it takes HOST:PORT, or a path with a / in it",
                         address);
    bool bracketed = n > 2 && address[0] == '[' && address[n - 1] == ']';
    (void)snprintf(host, sizeof(host), "%.*s", (int)(bracketed ? n - 2 : n), address + bracketed);
    int rc = getaddrinfo(n ? host : NULL, colon + 1, &want, out);
    return rc == 0 ? STRATA_OK : link_fail(l, STRATA_ERR_ARG, "%s: %s", address, gai_strerror(rc));
}

/* Whether somebody listens at a path; a name that nobody listens at is left from a process that died. */
static bool address_is_used(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool used = fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno != ECONNREFUSED;

    if (fd >= 0)
        (void)close(fd);
    return used;
}

/* Whether the path is a socket; any other file is the user's. */
static bool address_is_left(const char *path)
{
    struct stat st;
    bool is_socket = lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);

    errno = EADDRINUSE;
    return is_socket;
}

static int listen_path(strata_channel_link_t *l, const char *address)
{
    struct sockaddr_un at;
    int rc = address_path(l, address, &at);

    if (rc != STRATA_OK)
        return rc;
    l->listener = st_socket_listen_at((struct sockaddr *)&at, sizeof(at));
    if (l->listener < 0 && errno == EADDRINUSE && address_is_left(address) && !address_is_used(&at)) {
        (void)unlink(address);
        l->listener = st_socket_listen_at((struct sockaddr *)&at, sizeof(at));
    }
    if (l->listener < 0)
        return link_fail(l, STRATA_ERR_SYSTEM, "cannot listen at %s: %s", address, strerror(errno));
    l->path = true;
    (void)snprintf(l->address, sizeof(l->address), "%s", address);
    return STRATA_OK;
}

/* The host by which others reach a process that listens on all addresses. */
static void listen_host(char *out, size_t size)
{
    struct sockaddr_storage at;
    uint8_t address[1][16];

    st_socket_addresses(address, 1);
    if (memcmp(address[0], (uint8_t[16]){0}, 16) == 0)
        memcpy(address[0], st_socket_loopback, 16);
    socklen_t n = st_socket_address(address[0], 0, &at);
    char host[NI_MAXHOST];
    if (getnameinfo((struct sockaddr *)&at, n, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
        (void)snprintf(host, sizeof(host), "localhost");
    (void)snprintf(out, size, at.ss_family == AF_INET6 ? "[%s]" : "%s", host);
}

/* The host as the caller has it, or one that can be reached, and the port that the kernel gave for 0. */
static void listen_name(strata_channel_link_t *l, const char *address)
{
    char host[LINK_ADDRESS - 8]; /* and the port */
    size_t n = (size_t)(strrchr(address, ':') - address);

    if (n == 0)
        listen_host(host, sizeof(host));
    else
        (void)snprintf(host, sizeof(host), "%.*s", (int)n, address);
    (void)snprintf(l->address, sizeof(l->address), "%s:%u", host, st_socket_port(l->listener));
}

/* Listens at the first address of that family, or AF_UNSPEC, that can be had. */
static void listen_first(strata_channel_link_t *l, const struct addrinfo *all, int family)
{
    for (const struct addrinfo *a = all; a && l->listener < 0; a = a->ai_next)
        if (family == AF_UNSPEC || a->ai_family == family)
            l->listener = st_socket_listen_at(a->ai_addr, a->ai_addrlen);
}

int link_listen(strata_channel_link_t *l, const char *address)
{
    struct addrinfo *all = NULL;

    if (strchr(address, '/'))
        return listen_path(l, address);
    int rc = address_find(l, address, true, &all);
    if (rc != STRATA_OK)
        return rc;
    if (address[0] == ':')
        listen_first(l, all, AF_INET6); /* takes IPv4 as well */
    listen_first(l, all, AF_UNSPEC);
    int error = errno;
    freeaddrinfo(all);
    if (l->listener < 0)
        return link_fail(l, STRATA_ERR_SYSTEM, "cannot listen at %s: %s", address, strerror(error));
    listen_name(l, address);
    return STRATA_OK;
}

/* A connection to one address. -1: errno says why. */
static int dial_one(const struct sockaddr *at, socklen_t n, int64_t until)
{
    int fd = st_socket_dial_at(at, n), error = 0;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return -1;
    if (link_wait(fd, POLLOUT, until) != STRATA_OK || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = ETIMEDOUT;
    if (error == 0)
        return fd;
    (void)close(fd);
    errno = error;
    return -1;
}

int link_dial(const strata_channel_link_t *l, const char *address, int64_t until, int *fd)
{
    struct sockaddr_un path;
    struct addrinfo *all = NULL;
    int rc;

    *fd = -1;
    if (strchr(address, '/')) {
        rc = address_path(l, address, &path);
        if (rc == STRATA_OK)
            *fd = dial_one((struct sockaddr *)&path, sizeof(path), until);
    } else {
        rc = address_find(l, address, false, &all);
        for (struct addrinfo *a = rc == STRATA_OK ? all : NULL; a && *fd < 0; a = a->ai_next)
            *fd = dial_one(a->ai_addr, a->ai_addrlen, until);
        if (rc == STRATA_OK)
            freeaddrinfo(all);
    }
    return rc == STRATA_OK && *fd < 0 ? STRATA_ERR_UNREACHABLE : rc;
}
