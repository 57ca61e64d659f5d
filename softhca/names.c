/* What a process of the fabric is called. */
#include "fabric.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *this_fabric(void)
{
    const char *fabric = getenv("SOFTHCA_FABRIC");
    return fabric && *fabric ? fabric : "0";
}

__attribute__((format(printf, 4, 5))) static void name(const char *fabric, struct sockaddr_un *a, socklen_t *n,
                                                       const char *format, ...)
{
    va_list rest;
    int length, more;

    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    length = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "softhca-%u-%.32s-", (unsigned)geteuid(), fabric);
    va_start(rest, format);
    more = vsnprintf(a->sun_path + 1 + length, sizeof a->sun_path - 1 - (size_t)length, format, rest);
    va_end(rest);
    *n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length + (size_t)more);
}

void hca_socket_name(uint32_t index, struct sockaddr_un *a, socklen_t *n)
{
    name(this_fabric(), a, n, "%u", index);
}

void hca_socket_name_in(const char *fabric, uint32_t index, struct sockaddr_un *a, socklen_t *n)
{
    name(fabric, a, n, "%u", index);
}

void hca_manager_name(uint32_t space, uint32_t port, const char *owner, struct sockaddr_un *a, socklen_t *n)
{
    name(this_fabric(), a, n, "cm-%x-%u-%s", space, port, owner);
}
