/* Sockets: their options. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include "tcp.h"

/* The kernel asks an idle peer, so that its silence is noticed in half of the time-out. */
void tcp_set_keepalive(const struct tcp_module *m, int fd)
{
    int half = (int)(tcp_half_timeout_ms(m) / 1000), on = 1;
    int idle = half / 4 > 0 ? half / 4 : 1;
    int every = half / (int)TCP_LOOKS > 0 ? half / (int)TCP_LOOKS : 1;
    int count = (half - idle) / every > 0 ? (half - idle) / every : 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

void tcp_set_socket(const struct tcp_module *m, int fd)
{
    int size = (int)m->par->sndbuf;

    st_socket_no_delay(fd);
    if (size)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    size = (int)m->par->unsent;
    if (size)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &size, sizeof size);
    size = (int)m->par->rcvbuf;
    if (size)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

bool tcp_conn_is_over(const struct tcp_conn *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}
