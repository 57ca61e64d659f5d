/* The other way to a peer's segment: the owner hands its descriptor over through an abstract AF_UNIX socket. For peers
 * that /proc does not show: another pid namespace, a process that may not be looked into. The owner answers when
 * it makes progress and finds nothing else to do. */
#define _GNU_SOURCE 1
#include "attach.h"
#include "sm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <strata/sdk/clock.h>

socklen_t sm_socket_address(const char *name, struct sockaddr_un *a)
{
    size_t n = strlen(name);

    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path + 1, name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

void sm_socket_name(char name[SM_SOCKET_NAME], const char *prefix, const uint8_t key[16])
{
    size_t at = (size_t)snprintf(name, SM_SOCKET_NAME, "%s", prefix);

    /* Another half of the key than the probe word, which is no secret. */
    for (size_t i = 0; i < 12; i++)
        at += (size_t)snprintf(name + at, SM_SOCKET_NAME - at, "%02x", key[4 + i]);
}

int sm_socket_listen(char name[SM_SOCKET_NAME], const uint8_t key[16])
{
    struct sockaddr_un a;
    socklen_t n;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    sm_socket_name(name, "strata-", key);
    if (fd < 0) {
        name[0] = 0;
        return -1;
    }
    n = sm_socket_address(name, &a);
    if (bind(fd, (struct sockaddr *)&a, n) != 0 || listen(fd, 64) != 0) {
        close(fd);
        name[0] = 0;
        return -1;
    }
    return fd;
}

static bool sm_socket_same_user(int fd)
{
    struct ucred cred;
    socklen_t n = sizeof cred;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 && cred.uid == geteuid();
}

static void sm_socket_give_fd(int to, int what)
{
    char byte = 0;
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
    struct cmsghdr *c;

    memset(&control, 0, sizeof control);
    msg.msg_control = control.room;
    msg.msg_controllen = sizeof control.room;
    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &what, sizeof what);
    (void)sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT); /* failing: the peer sees the connection closed */
}

void sm_socket_serve(struct sm_module *m)
{
    int fd;

    if (m->listen_fd < 0)
        return;
    while ((fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (sm_socket_same_user(fd))
            sm_socket_give_fd(fd, m->seg.fd);
        close(fd);
    }
}

/* The descriptor in a waiting message; -1 and EAGAIN when there is none yet. */
static int sm_socket_take_fd(int from)
{
    char byte;
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
    struct cmsghdr *c;
    ssize_t n;
    int fd;

    msg.msg_control = control.room;
    msg.msg_controllen = sizeof control.room;
    n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n == 0) {
        /* Linux looks for a message and for the end separately: an owner that sends and closes between the two has its
         * message behind what looks like the end. */
        msg.msg_controllen = sizeof control.room;
        n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    }
    if (n < 0)
        return -1;
    c = CMSG_FIRSTHDR(&msg);
    if (n == 0 || !c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(int))) {
        errno = ECONNRESET;
        return -1;
    }
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

int sm_socket_fetch(struct sm_module *m, const struct sm_card *card, char *why, size_t why_size)
{
    int64_t end = st_now_ms() + m->par->attach_timeout_ms;
    struct sockaddr_un a;
    socklen_t n = sm_socket_address(card->socket, &a);
    int fd, got = -1;

    if (!card->socket[0]) {
        snprintf(why, why_size, "the peer serves no socket");
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        snprintf(why, why_size, "socket: %s", strerror(errno));
        return -1;
    }
    while (connect(fd, (struct sockaddr *)&a, n) != 0) {
        if ((errno != EAGAIN && errno != EINTR) || st_now_ms() > end) { /* EAGAIN: its backlog is full */
            snprintf(why, why_size, "socket @%s: %s", card->socket, strerror(errno));
            goto out;
        }
        sm_socket_serve(m);
        usleep(1000);
    }
    if (!sm_socket_same_user(fd)) {
        snprintf(why, why_size, "socket @%s is served by another user", card->socket);
        goto out;
    }
    /* Two that fetch from each other at the same time must serve while they wait. */
    while ((got = sm_socket_take_fd(fd)) < 0) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = m->listen_fd, .events = POLLIN}};
        if ((errno != EAGAIN && errno != EINTR) || st_now_ms() > end) {
            snprintf(why, why_size, "socket @%s: %s", card->socket,
                     errno == EAGAIN ? "the peer made no progress in time" : strerror(errno));
            goto out;
        }
        poll(p, 2, 10);
        sm_socket_serve(m);
    }
out:
    close(fd);
    return got;
}
