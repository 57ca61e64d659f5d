/* Sockets: their options, and a call that sends. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
    int on = 1, size;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    size = (int)m->par->sndbuf;
    if (size)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    size = (int)m->par->unsent;
    if (size)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &size, sizeof size);
    size = (int)m->par->rcvbuf;
    if (size)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static bool socket_is_full(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM;
}

ssize_t tcp_send_piece(int fd, const void *bytes, size_t n)
{
    ssize_t gone;

    do
        gone = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (gone < 0 && errno == EINTR);
    return gone < 0 && socket_is_full() ? 0 : gone;
}

ssize_t tcp_send_pieces(int fd, const struct msghdr *msg, int flags)
{
    ssize_t n;

    do
        n = sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n < 0 && socket_is_full() ? 0 : n;
}

bool tcp_conn_is_over(const struct tcp_conn *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}
