/* Waking a process that waits for descriptors as well: an empty datagram to an abstract AF_UNIX socket, whose name
 * follows from the key in the header of its segment. Whoever guesses the name can end sleeps, and no more. */
#define _GNU_SOURCE 1
#include "attach.h"
#include "sm.h"
#include "wake.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t wake_address_of(const uint8_t key[16], struct sockaddr_un *a)
{
    char name[SM_SOCKET_NAME];

    sm_socket_name(name, "strata-wake-", key);
    return sm_socket_address(name, a);
}

int sm_wake_socket(struct sm_module *m)
{
    struct sockaddr_un a;
    socklen_t n;
    int fd;

    if (m->wake_fd >= 0)
        return m->wake_fd;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    n = wake_address_of(m->card.key, &a);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, n) != 0) {
        close(fd);
        fd = -1;
    }
    m->wake_fd = fd;
    return fd;
}

void sm_wake_socket_send(struct sm_module *m, const uint8_t key[16])
{
    struct sockaddr_un a;
    socklen_t n = wake_address_of(key, &a);

    /* Fails when the socket is full of wakes, or the process gone: both are as good. */
    if (sm_wake_socket(m) >= 0)
        (void)sendto(m->wake_fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, n);
}

void sm_wake_socket_empty(struct sm_module *m)
{
    char byte;

    while (recv(m->wake_fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0)
        ;
}

void sm_wake_socket_close(struct sm_module *m)
{
    if (m->wake_fd >= 0)
        close(m->wake_fd);
    m->wake_fd = -1;
}
