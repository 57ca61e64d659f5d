/* The control socket: commands to a process while it runs, a line each, and a line back.
 *
 * It is the socket by whose name the process is found, so most of who connects only wants to know the pid and is gone
 * at once. The engine's thread serves it between other things, so nothing here waits: what is not there yet is looked
 * for next time. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "hca.h"

#define CONNECTIONS 32
#define LINE_ROOM   160

struct connection {
    int fd; /* -1: none */
    size_t n;
    char line[LINE_ROOM];
};

/* Used by one thread, the engine's; it changes with the process. */
static struct control {
    pid_t pid;
    int epoll;
    unsigned next; /* to be given up when there is no room */
    struct connection connection[CONNECTIONS];
} control;

/* A child that was forked meanwhile may have it, too: closed alone it would stay in the poll set, and ready for ever.
 */
static void drop(struct connection *c)
{
    epoll_ctl(control.epoll, EPOLL_CTL_DEL, c->fd, NULL);
    shutdown(c->fd, SHUT_RDWR);
    close(c->fd);
    c->fd = -1;
}

/* A child of fork has its parent's, poll set included, which it leaves alone. */
static bool begin(void)
{
    if (control.pid == getpid())
        return control.epoll >= 0;
    if (control.pid) {
        close(control.epoll);
        for (int i = 0; i < CONNECTIONS; i++)
            if (control.connection[i].fd >= 0)
                close(control.connection[i].fd);
    }
    for (int i = 0; i < CONNECTIONS; i++)
        control.connection[i].fd = -1;
    control.pid = getpid();
    control.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN};
    if (control.epoll >= 0 && epoll_ctl(control.epoll, EPOLL_CTL_ADD, hca.listen_fd, &e)) {
        close(control.epoll);
        control.epoll = -1;
    }
    return control.epoll >= 0;
}

int hca_control_fd(void)
{
    return begin() ? control.epoll : -1;
}

/* "signal TOKEN": a peer that cannot have the descriptor. It waits for no answer. */
static bool signals(const char *command)
{
    static const char word[] = "signal ";
    if (strncmp(command, word, sizeof word - 1) != 0)
        return false;
    hca_signal_here(strtoull(command + sizeof word - 1, NULL, 16));
    return true;
}

/* Answers every whole line. False: enough of this connection. */
static bool answer(struct connection *c)
{
    char *end;
    while ((end = memchr(c->line, '\n', c->n))) {
        const size_t length = (size_t)(end - c->line) + 1;
        char command[LINE_ROOM], said[384];
        memcpy(command, c->line, length);
        command[length - 1] = 0;
        c->n -= length;
        memmove(c->line, c->line + length, c->n);
        if (signals(command))
            continue;
        hca_fault_command(command, said, sizeof said - 1);
        strcat(said, "\n");
        const size_t bytes = strlen(said);
        if (send(c->fd, said, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)bytes)
            return false; /* it does not read what it asks for */
    }
    return c->n < sizeof c->line;
}

/* False: it is gone, or has to go. */
static bool serve(struct connection *c)
{
    const ssize_t n = recv(c->fd, c->line + c->n, sizeof c->line - c->n, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    c->n += (size_t)n;
    return answer(c);
}

static bool allowed(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) && (who.uid == geteuid() || who.uid == 0);
}

static void welcome(int fd)
{
    struct connection *c = NULL;
    for (int i = 0; i < CONNECTIONS && !c; i++)
        if (control.connection[i].fd < 0)
            c = &control.connection[i];
    if (!c) {
        c = &control.connection[control.next++ % CONNECTIONS];
        /* In this order: nothing is sent after it was read for the last time. */
        (void)shutdown(c->fd, SHUT_RD);
        (void)serve(c);
        drop(c);
    }
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP};
    *c = (struct connection){.fd = fd};
    if (epoll_ctl(control.epoll, EPOLL_CTL_ADD, fd, &e) || !serve(c))
        drop(c);
}

void hca_control_serve(void)
{
    if (!begin())
        return;
    for (int i = 0; i < CONNECTIONS; i++)
        if (control.connection[i].fd >= 0 && !serve(&control.connection[i]))
            drop(&control.connection[i]);
    /* Bounded: the rest makes the descriptor readable again. */
    for (int i = 0; i < 64; i++) {
        const int fd = accept4(hca.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (allowed(fd))
            welcome(fd);
        else
            close(fd);
    }
}
