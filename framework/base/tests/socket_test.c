/* Sockets that never block: found at their port, read and written as far as they go. */
#include <check.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "support/await.h"
#include "support/run_suite.h"

enum { MOST = 4 };

/* A listener is found at its port by IPv4 loopback, whichever family it has; nobody is there after it is closed. */
START_TEST(dialling)
{
    uint16_t port = 0;
    uint8_t addresses[MOST][16];
    int listener = st_socket_listen(_i, &port), fd, there, on = 0;
    socklen_t n;
    struct pollfd p;

    ck_assert_int_ge(listener, 0);
    ck_assert_uint_ne(port, 0);
    fd = st_socket_dial(st_socket_loopback, port);
    ck_assert_int_ge(fd, 0);
    p = (struct pollfd){.fd = listener, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, AWAIT_LIMIT_S * 1000), 1);
    there = accept(listener, NULL, NULL);
    ck_assert_int_ge(there, 0);
    n = sizeof on;
    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
    ck_assert_int_ne(on, 0);
    close(there);
    close(fd);
    close(listener);
    fd = st_socket_dial(st_socket_loopback, port);
    if (fd >= 0) {
        int error = 0;
        n = sizeof error;
        p = (struct pollfd){.fd = fd, .events = POLLOUT};
        ck_assert_int_eq(poll(&p, 1, AWAIT_LIMIT_S * 1000), 1);
        ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n), 0);
        ck_assert_int_ne(error, 0);
        close(fd);
    }
    st_socket_addresses(addresses, MOST);
    for (uint32_t i = 0; i < MOST; i++)
        ck_assert_int_ne(memcmp(addresses[i], st_socket_loopback, 13), 0); /* 127.* is of no use to others */
}
END_TEST

/* Whether the descriptor blocks or not. */
START_TEST(bytes)
{
    static uint8_t block[1 << 16];
    uint8_t got[8];
    size_t sent = 0, taken = 0;
    ssize_t n;
    int fd[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | (_i ? SOCK_NONBLOCK : 0), 0, fd), 0);
    ck_assert_int_eq(st_socket_read(fd[1], got, sizeof got), 0);
    ck_assert_int_eq(st_socket_write(fd[0], "abc", 3), 3);
    ck_assert_int_eq(st_socket_read(fd[1], got, sizeof got), 3);
    ck_assert_int_eq(memcmp(got, "abc", 3), 0);
    while ((n = st_socket_write(fd[0], block, sizeof block)) > 0)
        sent += (size_t)n;
    ck_assert_int_eq(n, 0);
    while ((n = st_socket_read(fd[1], block, sizeof block)) > 0)
        taken += (size_t)n;
    ck_assert_int_eq(n, 0);
    ck_assert_uint_eq(taken, sent);
    close(fd[0]);
    ck_assert_int_eq(st_socket_read(fd[1], got, sizeof got), STRATA_ERR_PEER);
    ck_assert_int_eq(st_socket_write(fd[1], "abc", 3), STRATA_ERR_PEER); /* and no signal */
    close(fd[1]);
}
END_TEST

/* The functions for addresses of any family, by a name without a file: errno says what is wrong with it. */
START_TEST(names)
{
    static uint8_t block[1 << 16];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct sockaddr *name = (struct sockaddr *)&at;
    struct iovec v[2] = {{block, 1}, {block, sizeof block}};
    struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
    int listener, fd, there;
    ssize_t n;

    (void)snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "strata-socket-test-%d", (int)getpid());
    ck_assert_int_eq(st_socket_dial_at(name, sizeof at), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    listener = st_socket_listen_at(name, sizeof at);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(st_socket_listen_at(name, sizeof at), -1);
    ck_assert_int_eq(errno, EADDRINUSE);
    fd = st_socket_dial_at(name, sizeof at);
    ck_assert_int_ge(fd, 0);
    there = accept(listener, NULL, NULL);
    ck_assert_int_ge(there, 0);
    ck_assert_int_gt(st_socket_sendmsg(fd, &msg, 0), 1);
    while ((n = st_socket_sendmsg(fd, &msg, 0)) > 0)
        ;
    ck_assert_int_eq(n, 0);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(st_socket_send(fd, block, sizeof block), 0);
    close(there);
    ck_assert_int_eq(st_socket_send(fd, block, 1), -1); /* and no signal */
    ck_assert_int_eq(st_socket_sendmsg(fd, &msg, 0), -1);
    close(fd);
    close(listener);
}
END_TEST

/* IPv4 is mapped into IPv6. */
START_TEST(families)
{
    const uint8_t v6[16] = {0xfd, [15] = 1};
    struct sockaddr_storage at;

    ck_assert_uint_eq(st_socket_address(st_socket_loopback, 7, &at), sizeof(struct sockaddr_in));
    ck_assert_int_eq(at.ss_family, AF_INET);
    ck_assert_uint_eq(((struct sockaddr_in *)(void *)&at)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    ck_assert_uint_eq(st_socket_address(v6, 7, &at), sizeof(struct sockaddr_in6));
    ck_assert_int_eq(at.ss_family, AF_INET6);
    ck_assert_uint_eq(((struct sockaddr_in6 *)(void *)&at)->sin6_port, htons(7));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sockets");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, dialling, 0, 2);
    tcase_add_loop_test(t, bytes, 0, 2);
    tcase_add_test(t, names);
    tcase_add_test(t, families);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
