/* What a process of the fabric is called. */
#include "fabric.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hca_socket_name(uint32_t index, struct sockaddr_un *a, socklen_t *n)
{
    const char *fabric = getenv("SOFTHCA_FABRIC");
    int length;

    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    length = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "softhca-%u-%.32s-%u", (unsigned)geteuid(),
                      fabric && *fabric ? fabric : "0", index);
    *n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
