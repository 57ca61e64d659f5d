/* Connecting by sockets, of a module without a device: what is left when a process has forked. The child has all of its
 * parent's descriptors, so that what the parent closes stays open. */
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <strata/sdk/socket.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "module.h"
#include "support/await.h"
#include "support/run_suite.h"

static const int here[] = {0, 1};

static const int *local_ranks(struct st_rte *rte, int *n)
{
    (void)rte;
    *n = 2;
    return here;
}

static const struct st_rte_ops rte_ops = {.local_ranks = local_ranks};
static struct st_rte rte = {.ops = &rte_ops, .rank = 0, .size = 2};
static struct ibv_comp_channel channel;
static struct ib_module *m;
static pid_t child;

static void open_module(void)
{
    char why[256] = "";

    m = calloc(1, sizeof *m);
    m->rte = &rte;
    channel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->dev.channel = &channel;
    m->oob.wait_fd = -1;
    m->card.key = 77;
    st_list_init(&m->conns.pending);
    ck_assert_msg(ib_method_tcp.open(m, why, sizeof why) == STRATA_OK, "%s", why);
    m->oob.open[0] = IB_METHOD_TCP;
    child = -1;
}

static void close_module(void)
{
    ib_methods_close(m);
    close(channel.fd);
    free(m);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

/* Until something has happened at the sockets. */
static int poll_until_event(void)
{
    int n;

    AWAIT((n = ib_method_tcp.poll(m)) != 0, usleep(1000));
    return n;
}

static bool await_ready(int fd, short what)
{
    return poll(&(struct pollfd){.fd = fd, .events = what}, 1, AWAIT_LIMIT_S * 1000) == 1;
}

/* A caller that has been accepted. */
static int call(void)
{
    int fd = st_socket_dial(st_socket_loopback, m->card.tcp_port);

    ck_assert_int_ge(fd, 0);
    ck_assert(await_ready(fd, POLLOUT));
    ck_assert_int_gt(poll_until_event(), 0);
    return fd;
}

/* A child of the module's process alone: the caller is somebody else. */
static void fork_sleeper(int caller)
{
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(caller);
        pause();
        _exit(0);
    }
}

static bool hung_up(int fd)
{
    char byte;

    return await_ready(fd, POLLIN) && recv(fd, &byte, 1, 0) <= 0;
}

/* Who is refused is told at once, and nothing that happens to its socket afterwards is seen: the line has been freed.
 * A sleeper would be woken by it for ever. */
START_TEST(refused_after_fork)
{
    int fd = call();

    fork_sleeper(fd);
    ck_assert_int_eq(send(fd, "GET / HTTP/1.0\r\n", 16, MSG_NOSIGNAL), 16);
    ck_assert_int_gt(poll_until_event(), 0);
    ck_assert_uint_eq(m->count.refused, 1);
    ck_assert(hung_up(fd));
    (void)send(fd, "more", 4, MSG_NOSIGNAL);
    close(fd);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        ck_assert_int_eq(ib_method_tcp.poll(m), 0);
    }
    ck_assert_int_eq(poll(&(struct pollfd){.fd = m->oob.wait_fd, .events = POLLIN}, 1, 0), 0);
    ck_assert_uint_eq(m->count.refused, 1);
}
END_TEST

/* Another line that comes to lie where the freed one was has only events of its own. */
START_TEST(next_one_after_fork)
{
    int first = call(), second;

    fork_sleeper(first);
    ck_assert_int_eq(send(first, "GET / HTTP/1.0\r\n", 16, MSG_NOSIGNAL), 16);
    ck_assert_int_gt(poll_until_event(), 0);
    close(first);
    second = call();
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        ck_assert_int_eq(ib_method_tcp.poll(m), 0);
    }
    close(second);
    ck_assert_int_eq(poll_until_event(), 1);
    ck_assert_int_eq(ib_method_tcp.poll(m), 0);
}
END_TEST

/* Nobody waits in vain for a process that has closed. */
START_TEST(closed_after_fork)
{
    int fd = call();
    uint16_t port = m->card.tcp_port;

    fork_sleeper(fd);
    ib_methods_close(m);
    ck_assert(hung_up(fd));
    close(fd);
    fd = st_socket_dial(st_socket_loopback, port);
    if (fd >= 0) {
        int error = 0;
        socklen_t n = sizeof error;
        ck_assert(await_ready(fd, POLLOUT));
        ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n), 0);
        ck_assert_int_ne(error, 0);
        close(fd);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connecting by sockets");
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, open_module, close_module);
    tcase_add_test(t, refused_after_fork);
    tcase_add_test(t, next_one_after_fork);
    tcase_add_test(t, closed_after_fork);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
