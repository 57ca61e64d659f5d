#include "tcp_line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
const uint8_t ib_tcp_loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

/* ---- addresses ---- */

socklen_t ib_sockaddr(const uint8_t address[16], uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memset(out, 0, sizeof *out);
    if (memcmp(address, mapped, sizeof mapped) == 0) {
        memcpy(&v4.sin_addr, address + 12, 4);
        memcpy(out, &v4, sizeof v4);
        return sizeof v4;
    }
    memcpy(&v6.sin6_addr, address, 16);
    memcpy(out, &v6, sizeof v6);
    return sizeof v6;
}

/* IPv4 into IPv6; false: of no use to others. */
bool ib_to_address(const struct ifaddrs *i, uint8_t out[16])
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)i->ifa_addr;
        memcpy(out, mapped, sizeof mapped);
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
void ib_tcp_addresses(uint8_t out[IB_ADDRESSES][16])
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *all = NULL;
    uint32_t n = 0;

    memset(out, 0, (size_t)IB_ADDRESSES * 16);
    if (getifaddrs(&all) != 0)
        return;
    for (int f = 0; f < 2; f++)
        for (const struct ifaddrs *i = all; i && n < IB_ADDRESSES; i = i->ifa_next) {
            uint8_t address[16];
            if (i->ifa_addr && i->ifa_addr->sa_family == families[f] && ib_to_address(i, address))
                memcpy(out[n++], address, 16);
        }
    freeifaddrs(all);
}

/* ---- sockets ---- */

static int open_listener(int family, bool loopback)
{
    struct sockaddr_storage at;
    static const uint8_t any4[16] = {[10] = 0xff, 0xff}, any6[16];
    socklen_t n = ib_sockaddr(loopback ? ib_tcp_loopback : family == AF_INET ? any4 : any6, 0, &at);
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), off = 0, error;

    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

int ib_tcp_listen(bool loopback, uint16_t *port)
{
    int fd = loopback ? -1 : open_listener(AF_INET6, false);
    struct sockaddr_in6 at = {.sin6_port = 0};
    socklen_t n = sizeof at;

    if (fd < 0)
        fd = open_listener(AF_INET, loopback);
    if (fd < 0)
        return -1;
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0) {
        (void)close(fd);
        return -1;
    }
    /* sin_port and sin6_port are at the same place. */
    *port = ntohs(at.sin6_port);
    return fd;
}

int ib_tcp_dial(const uint8_t address[16], uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t n = ib_sockaddr(address, port, &to);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, n) == 0 || errno == EINPROGRESS)
        return fd;
    (void)close(fd);
    return -1;
}

/* ---- frames ---- */

enum ib_tcp_news ib_tcp_read(struct ib_tcp_line *line)
{
    while (line->n_in < sizeof line->in) {
        ssize_t n = recv(line->fd, line->in.bytes + line->n_in, sizeof line->in - line->n_in, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? IB_TCP_NOTHING : IB_TCP_ENDED;
        if (n == 0)
            return IB_TCP_ENDED;
        line->n_in += (uint32_t)n;
        /* As early as it can be told. */
        if ((line->n_in >= 4 && line->in.frame.magic != IB_TCP_MAGIC) ||
            (line->n_in >= 8 && line->in.frame.length != sizeof line->in.frame.conn))
            return IB_TCP_INVALID;
    }
    line->n_in = 0;
    return IB_TCP_FRAME;
}

bool ib_tcp_queue(struct ib_tcp_line *line, const struct ib_conn *c)
{
    struct ib_tcp_frame f = {IB_TCP_MAGIC, sizeof f.conn, *c};

    if (line->n_out + sizeof f > sizeof line->out)
        return false;
    memcpy(line->out + line->n_out, &f, sizeof f);
    line->n_out += (uint32_t)sizeof f;
    return true;
}

bool ib_tcp_write(struct ib_tcp_line *line)
{
    while (line->n_out) {
        ssize_t n = send(line->fd, line->out, line->n_out, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN;
        line->n_out -= (uint32_t)n;
        memmove(line->out, line->out + n, line->n_out);
    }
    return true;
}
