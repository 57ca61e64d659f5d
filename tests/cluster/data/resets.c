/* Preloaded: of every few messages that leave by TCP one is cut in the middle, and its connection reset, as a device
 * between two machines does it. STRATA_TEST_RESETS says how many there are from one reset to the next, and
 * STRATA_TEST_RESETS_FILE where a line is left for each. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    ssize_t (*real)(int, const struct msghdr *, int);
    const char *every = getenv("STRATA_TEST_RESETS");
    unsigned turn = every ? (unsigned)atoi(every) : 0;
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    struct iovec part = msg->msg_iov[0];
    struct msghdr cut = {.msg_iov = &part, .msg_iovlen = 1};

    *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    if (turn == 0 || !is_tcp(fd) || ++sent % turn != 0)
        return real(fd, msg, flags);
    part.iov_len /= 2;
    (void)real(fd, &cut, flags);
    leave_line();
    if (connect(fd, &none, sizeof none) != 0)
        _exit(98);
    errno = ECONNRESET;
    return -1;
}
