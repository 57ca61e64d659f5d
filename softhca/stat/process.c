/* Who is on the fabric: the kernel lists the sockets by whose names processes find each other. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softhca/fabric.h"
#include "stat.h"

/* "softhca-USER-FABRIC-INDEX"; connection managers have "softhca-USER-FABRIC-cm-..." (softhca/names.c). */
static bool parse(const char *line, struct place *out)
{
    const char *wanted = getenv("SOFTHCA_FABRIC");
    char prefix[32], *end;
    const int length = snprintf(prefix, sizeof prefix, " @softhca-%u-", (unsigned)geteuid());
    const char *fabric = strstr(line, prefix), *last = fabric ? strrchr(fabric, '-') : NULL;
    if (!fabric || last < fabric + length || last[1] < '0' || last[1] > '9')
        return false;
    fabric += length;
    const size_t n = (size_t)(last - fabric);
    const unsigned long index = strtoul(last + 1, &end, 10);
    if (n == 0 || n >= sizeof out->fabric || index < 1 || index >= HCA_PROCESSES || (*end && *end != '\n'))
        return false;
    memset(out, 0, sizeof *out);
    memcpy(out->fabric, fabric, n);
    out->index = (uint32_t)index;
    if (wanted && *wanted)
        return strncmp(wanted, out->fabric, FABRIC_ROOM - 1) == 0;
    return !strstr(out->fabric, "-cm-");
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int order = strcmp(x->fabric, y->fabric);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

struct place *stat_places(size_t *n)
{
    FILE *f = fopen("/proc/net/unix", "re");
    if (!f)
        return NULL;
    struct place *list = malloc(sizeof *list);
    size_t found = 0, room = 1, size = 0;
    char *line = NULL;
    while (list && getline(&line, &size, f) > 0)
        if (parse(line, &list[found]) && ++found == room) {
            struct place *more = reallocarray(list, room *= 2, sizeof *list);
            if (!more)
                free(list);
            list = more;
        }
    free(line);
    fclose(f);
    if (!list)
        return NULL;
    /* Accepted connections have the same name as the socket that listens. */
    qsort(list, found, sizeof *list, by_place);
    *n = 0;
    for (size_t i = 0; i < found; i++)
        if (i == 0 || by_place(&list[i], &list[*n - 1]) != 0)
            list[(*n)++] = list[i];
    return list;
}

int stat_connect(const struct place *place, int *pid)
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
    hca_socket_name_in(place->fabric, place->index, &a, &n);
    if (connect(fd, (struct sockaddr *)&a, n) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
        close(fd);
        return -1;
    }
    *pid = who.pid;
    return fd;
}
