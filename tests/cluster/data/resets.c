/* Preloaded: of every few messages that leave by TCP, those of a handshake included, one is cut somewhere, and its
 * connection reset, as a device between two machines does it. STRATA_TEST_RESETS says how many there are from one reset
 * to the next, and STRATA_TEST_RESETS_FILE where a line is left for each. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned sent; /* by this process, which has one thread that sends */

static int is_tcp(int fd)
{
    int domain = 0;
    socklen_t n = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && (domain == AF_INET || domain == AF_INET6);
}

static void leave_line(void)
{
    const char *path = getenv("STRATA_TEST_RESETS_FILE");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;

    if (fd < 0)
        return;
    if (write(fd, "reset\n", 6) != 6)
        _exit(99);
    close(fd);
}

/* Whether this message is the one that is cut. */
static int chosen(int fd)
{
    const char *every = getenv("STRATA_TEST_RESETS");
    unsigned turn = every ? (unsigned)atoi(every) : 0;

    return turn > 0 && is_tcp(fd) && ++sent % turn == 0;
}

/* Sends a part of the bytes, another one each time: none, some of a header, some of the payload, all. Then the reset,
 * of which the next call tells, as the kernel does. */
static ssize_t cut(int fd, const struct iovec *iov, size_t n)
{
    ssize_t (*real)(int, const void *, size_t, int);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    size_t all = 0, left, sent_now = 0;

    *(void **)&real = dlsym(RTLD_NEXT, "send");
    for (size_t i = 0; i < n; i++)
        all += iov[i].iov_len;
    left = sent * 2654435761u % (all + 1);
    for (size_t i = 0; i < n && left > 0; i++) {
        size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;
        if (part > 0 && real(fd, iov[i].iov_base, part, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)part)
            break;
        left -= part;
        sent_now += part;
    }
    leave_line();
    if (connect(fd, &none, sizeof none) != 0)
        _exit(98);
    errno = ECONNRESET;
    return sent_now ? (ssize_t)sent_now : -1;
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
    ssize_t (*real)(int, const void *, size_t, int);
    struct iovec one = {(void *)(uintptr_t)buf, n};

    *(void **)&real = dlsym(RTLD_NEXT, "send");
    return chosen(fd) ? cut(fd, &one, 1) : real(fd, buf, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    ssize_t (*real)(int, const struct msghdr *, int);

    *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    return chosen(fd) ? cut(fd, msg->msg_iov, msg->msg_iovlen) : real(fd, msg, flags);
}
