/* Stream sockets that never block, and their addresses. */
#include <strata/sdk/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t socket_mapped[12] = {[10] = 0xff, 0xff};
const uint8_t st_socket_loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

/* ---- addresses ---- */

socklen_t st_socket_address(const uint8_t address[16], uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memset(out, 0, sizeof *out);
    if (memcmp(address, socket_mapped, sizeof socket_mapped) == 0) {
        memcpy(&v4.sin_addr, address + 12, 4);
        memcpy(out, &v4, sizeof v4);
        return sizeof v4;
    }
    memcpy(&v6.sin6_addr, address, 16);
    memcpy(out, &v6, sizeof v6);
    return sizeof v6;
}

bool st_socket_interface(const struct ifaddrs *i, uint8_t out[16])
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)i->ifa_addr;
        memcpy(out, socket_mapped, sizeof socket_mapped);
        memcpy(out + 12, &v4->sin_addr, 4);
        return true;
    }
    if (i->ifa_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;
        memcpy(out, &v6->sin6_addr, 16);
        return !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
    }
    return false;
}

/* IPv4 first: where both work it is no worse, and it works in more places. */
void st_socket_addresses(uint8_t (*out)[16], uint32_t most)
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *all = NULL;
    uint32_t n = 0;

    memset(out, 0, (size_t)most * 16);
    if (getifaddrs(&all) != 0)
        return;
    for (int f = 0; f < 2; f++)
        for (const struct ifaddrs *i = all; i && n < most; i = i->ifa_next) {
            uint8_t address[16];
            if (i->ifa_addr && i->ifa_addr->sa_family == families[f] && st_socket_interface(i, address))
                memcpy(out[n++], address, 16);
        }
    freeifaddrs(all);
}

/* ---- sockets ---- */

/* Closes the socket; errno stays. */
static int socket_failed(int fd)
{
    int error = errno;

    (void)close(fd);
    errno = error;
    return -1;
}

static bool socket_port_is_given(const struct sockaddr *at)
{
    /* sin_port and sin6_port are at the same place. */
    return (at->sa_family == AF_INET || at->sa_family == AF_INET6) &&
           ((const struct sockaddr_in *)(const void *)at)->sin_port != 0;
}

int st_socket_listen_at(const struct sockaddr *at, socklen_t n)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), off = 0, on = 1;

    if (fd < 0)
        return -1;
    if (at->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (socket_port_is_given(at)) /* connections of the port's last user that linger do not keep it */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, at, n) == 0 && listen(fd, SOMAXCONN) == 0 ? fd : socket_failed(fd);
}

static int socket_listener(int family, bool loopback, uint16_t port)
{
    struct sockaddr_storage at;
    static const uint8_t any4[16] = {[10] = 0xff, 0xff}, any6[16];
    socklen_t n = st_socket_address(loopback ? st_socket_loopback : family == AF_INET ? any4 : any6, port, &at);

    return st_socket_listen_at((struct sockaddr *)&at, n);
}

/* Both families by one socket, where the machine has IPv6. */
static int socket_listener_at(bool loopback, uint16_t port)
{
    int fd = loopback ? -1 : socket_listener(AF_INET6, false, port);

    return fd >= 0 || (!loopback && errno == EADDRINUSE) ? fd : socket_listener(AF_INET, loopback, port);
}

uint16_t st_socket_port(int fd)
{
    struct sockaddr_in6 at = {.sin6_port = 0};
    socklen_t n = sizeof at;

    /* sin_port and sin6_port are at the same place. */
    return getsockname(fd, (struct sockaddr *)&at, &n) == 0 ? ntohs(at.sin6_port) : 0;
}

int st_socket_listen(bool loopback, uint16_t *port)
{
    return st_socket_listen_in(loopback, 0, 0, port);
}

int st_socket_listen_in(bool loopback, uint16_t first, uint16_t last, uint16_t *port)
{
    int fd = -1;

    errno = EINVAL; /* of an empty range */
    for (uint32_t p = first; p <= last && fd < 0; p++) {
        fd = socket_listener_at(loopback, (uint16_t)p);
        if (fd < 0 && errno != EADDRINUSE)
            break;
    }
    if (fd < 0)
        return -1;
    *port = st_socket_port(fd);
    return *port ? fd : socket_failed(fd);
}

void st_socket_no_delay(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int st_socket_dial_at(const struct sockaddr *at, socklen_t n)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (at->sa_family != AF_UNIX)
        st_socket_no_delay(fd);
    return connect(fd, at, n) == 0 || errno == EINPROGRESS ? fd : socket_failed(fd);
}

int st_socket_dial(const uint8_t address[16], uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t n = st_socket_address(address, port, &to);

    return st_socket_dial_at((struct sockaddr *)&to, n);
}

/* ---- bytes ---- */

ssize_t st_socket_read(int fd, void *buf, size_t size)
{
    ssize_t n;

    do
        n = recv(fd, buf, size, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return n;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : STRATA_ERR_PEER;
}

static bool socket_is_full(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
}

ssize_t st_socket_send(int fd, const void *buf, size_t size)
{
    ssize_t n;

    do
        n = send(fd, buf, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 && socket_is_full() ? 0 : n;
}

ssize_t st_socket_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    ssize_t n;

    do
        n = sendmsg(fd, msg, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
    while (n < 0 && errno == EINTR);
    return n < 0 && socket_is_full() ? 0 : n;
}

ssize_t st_socket_write(int fd, const void *buf, size_t size)
{
    ssize_t n = st_socket_send(fd, buf, size);

    if (n >= 0)
        return n;
    return errno == ENOTCONN ? 0 : STRATA_ERR_PEER;
}
