/* Commands to this process, by its own control socket. */
#ifndef SOFTHCA_TESTS_CONTROL_H
#define SOFTHCA_TESTS_CONTROL_H

#include "softhca/fabric.h"
#include "support/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static inline int connect_self(void)
{
    for (uint32_t index = 1; index < 1024; index++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un a;
        struct ucred who;
        socklen_t n, size = sizeof who;
        hca_socket_name(index, &a, &n);
        if (connect(fd, (struct sockaddr *)&a, n) == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
            who.pid == getpid())
            return fd;
        close(fd);
    }
    FAIL("this process has no control socket");
    return -1;
}

static inline void ask_by(int fd, const char *what, char *answer, size_t room)
{
    ssize_t n;

    REQUIRE(dprintf(fd, "%s\n", what) > 0);
    n = read(fd, answer, room - 1);
    REQUIRE(n > 0);
    answer[n] = 0;
}

static inline void command_by(int fd, const char *what)
{
    char answer[256];

    ask_by(fd, what, answer, sizeof answer);
    REQUIRE_MSG(strcmp(answer, "ok\n") == 0, "%s: %s", what, answer);
}

static inline void command(const char *what)
{
    int fd = connect_self();

    command_by(fd, what);
    close(fd);
}

/* How often it came. */
static inline unsigned long tally(const char *what)
{
    char answer[384], *at;
    int fd = connect_self();

    ask_by(fd, "tally", answer, sizeof answer);
    close(fd);
    at = strstr(answer, what);
    REQUIRE_MSG(at != NULL, "tally: %s", answer);
    return strtoul(at + strlen(what), NULL, 10);
}

#endif
