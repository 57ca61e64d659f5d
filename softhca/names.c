/* What a process of the fabric is called. */
#include "fabric.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static void name(struct sockaddr_un *a, socklen_t *n, const char *format, ...)
{
    const char *fabric = getenv("SOFTHCA_FABRIC");
    va_list rest;
    int length, more;

    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    length = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "softhca-%u-%.32s-", (unsigned)geteuid(),
                      fabric && *fabric ? fabric : "0");
    va_start(rest, format);
    more = vsnprintf(a->sun_path + 1 + length, sizeof a->sun_path - 1 - (size_t)length, format, rest);
    va_end(rest);
    *n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length + (size_t)more);
}

void hca_socket_name(uint32_t index, struct sockaddr_un *a, socklen_t *n)
{
    name(a, n, "%u", index);
}

void hca_manager_name(uint32_t space, uint32_t port, struct sockaddr_un *a, socklen_t *n)
{
    name(a, n, "cm-%x-%u", space, port);
}
