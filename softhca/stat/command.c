/* A command to a process, by its control socket. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "stat.h"

#define PATIENCE_MS 5000

/* The connection to the process with this pid; -1: it is on no fabric. */
static int connect_pid(int pid)
{
    size_t n = 0;
    int fd = -1;
    struct place *list = stat_places(&n);
    for (size_t i = 0; list && i < n && fd < 0; i++) {
        int found;
        fd = stat_connect(&list[i], &found);
        if (fd >= 0 && found != pid) {
            close(fd);
            fd = -1;
        }
    }
    free(list);
    return fd;
}

static bool read_line(int fd, char *line, size_t room)
{
    size_t n = 0;
    while (n + 1 < room) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, PATIENCE_MS) <= 0 || read(fd, line + n, 1) != 1)
            return false;
        if (line[n++] == '\n')
            break;
    }
    line[n] = 0;
    return true;
}

int stat_command(int pid, const char *command)
{
    char line[512];
    const int fd = connect_pid(pid);
    if (fd < 0) {
        fprintf(stderr, "softhca-stat: process %d has no soft adapter\n", pid);
        return 1;
    }
    const int n = snprintf(line, sizeof line, "%s\n", command);
    const bool sent = n > 0 && (size_t)n < sizeof line && send(fd, line, (size_t)n, MSG_NOSIGNAL) == n;
    const bool answered = sent && read_line(fd, line, sizeof line);
    close(fd);
    if (!answered) {
        fprintf(stderr, "softhca-stat: process %d does not answer\n", pid);
        return 1;
    }
    fputs(line, stdout);
    return strncmp(line, "ok", 2) ? 1 : 0;
}
