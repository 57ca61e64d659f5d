/* Who is on the fabric: the kernel lists the sockets by whose names processes find each other. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softhca/fabric.h"
#include "stat.h"

/* All names but for their last part, the index. */
static void name_prefix(char *prefix, size_t room)
{
    struct sockaddr_un a;
    socklen_t n;
    hca_socket_name(0, &a, &n);
    snprintf(prefix, room, "@%.*s", (int)(n - offsetof(struct sockaddr_un, sun_path) - 1), a.sun_path + 1);
    prefix[strlen(prefix) - 1] = 0;
}

static uint32_t index_in(const char *line, const char *prefix)
{
    const char *at = strstr(line, prefix);
    if (!at || at[strlen(prefix)] < '0' || at[strlen(prefix)] > '9')
        return 0;
    const unsigned long index = strtoul(at + strlen(prefix), NULL, 10);
    return index < HCA_PROCESSES ? (uint32_t)index : 0;
}

int stat_indices(uint32_t index[HCA_PROCESSES])
{
    FILE *f = fopen("/proc/net/unix", "re");
    if (!f)
        return -1;
    char prefix[128], *line = NULL;
    size_t room = 0;
    bool seen[HCA_PROCESSES] = {false};
    name_prefix(prefix, sizeof prefix);
    /* Accepted connections have the same name as the socket that listens. */
    while (getline(&line, &room, f) > 0)
        seen[index_in(line, prefix)] = true;
    free(line);
    fclose(f);
    int n = 0;
    for (uint32_t i = 1; i < HCA_PROCESSES; i++)
        if (seen[i])
            index[n++] = i;
    return n;
}

int stat_connect(uint32_t index, int *pid)
{
    struct sockaddr_un a;
    struct ucred who;
    socklen_t n, size = sizeof who;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* A process that is stopped accepts nobody, and connect would wait once its backlog is full. */
    const struct timeval patience = {.tv_sec = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    hca_socket_name(index, &a, &n);
    if (connect(fd, (struct sockaddr *)&a, n) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
        close(fd);
        return -1;
    }
    *pid = who.pid;
    return fd;
}
