/* How soon this machine wakes a process, without Strata: the floor of the wake-ups of bench/promises.sh, which are
 * taken in the same way. Two processes on processors of their own. One sleeps; after a pause of 5 ms the other takes
 * the time, puts it into shared memory and wakes it. Microseconds from that time to the return of the sleeper's system
 * call. usage: wake_floor futex|eventfd|socket|pipe|tcp COUNT
 * - futex: a word in shared memory, no file
 * - eventfd, pipe: ppoll, then a read
 * - socket: a datagram to an abstract name; ppoll, then a receive
 * - tcp: 8 bytes over a connection by the loopback; ppoll, then a read */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum way { BY_FUTEX, BY_EVENTFD, BY_SOCKET, BY_PIPE, BY_TCP, WAYS };
static const char *const names[WAYS] = {"futex", "eventfd", "socket", "pipe", "tcp"};

struct shared {
    _Atomic(uint32_t) word;  /* counted up with each wake */
    _Atomic(uint32_t) ready; /* wakes that the sleeper has taken */
    int64_t at;              /* when the last wake began */
};

struct floor {
    enum way way;
    struct shared *shared;
    int reads, writes;
    struct sockaddr_un to;
    socklen_t to_len;
};

static void floor_must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "wake_floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The n-th processor that this process may use, counted over again from the first. */
static void bind_to(int n)
{
    cpu_set_t all, one;

    floor_must(sched_getaffinity(0, sizeof all, &all) == 0, "processors");
    n %= CPU_COUNT(&all);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET((size_t)i, &all) || n-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET((size_t)i, &one);
        floor_must(sched_setaffinity(0, sizeof one, &one) == 0, "binding");
        return;
    }
}

static void floor_connect(struct floor *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    f->writes = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    floor_must(listener >= 0 && f->writes >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 &&
                   listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
                   connect(f->writes, (struct sockaddr *)&at, sizeof at) == 0,
               "tcp");
    f->reads = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    floor_must(f->reads >= 0 && setsockopt(f->writes, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "accept");
    close(listener);
}

static void floor_open(struct floor *f)
{
    int fds[2];

    f->shared = mmap(NULL, sizeof *f->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    floor_must(f->shared != MAP_FAILED, "shared memory");
    switch (f->way) {
    case BY_EVENTFD:
        f->reads = f->writes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        floor_must(f->reads >= 0, "eventfd");
        break;
    case BY_PIPE:
        floor_must(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0, "pipe");
        f->reads = fds[0];
        f->writes = fds[1];
        break;
    case BY_SOCKET:
        f->to.sun_family = AF_UNIX;
        f->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                (size_t)snprintf(f->to.sun_path + 1, 64, "strata-wake-floor-%d", (int)getpid()));
        f->reads = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        f->writes = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        floor_must(f->reads >= 0 && f->writes >= 0 && bind(f->reads, (struct sockaddr *)&f->to, f->to_len) == 0,
                   "socket");
        break;
    case BY_TCP:
        floor_connect(f);
        break;
    case BY_FUTEX:
    case WAYS:
        break;
    }
}

static void floor_sleep(struct floor *f, uint32_t seen)
{
    struct pollfd p = {.fd = f->reads, .events = POLLIN};
    uint64_t in;

    if (f->way == BY_FUTEX) {
        while (atomic_load(&f->shared->word) == seen)
            syscall(SYS_futex, &f->shared->word, FUTEX_WAIT, seen, NULL, NULL, 0);
        return;
    }
    floor_must(ppoll(&p, 1, NULL, NULL) == 1, "ppoll");
    floor_must(f->way == BY_SOCKET ? recv(f->reads, &in, sizeof in, 0) > 0 : read(f->reads, &in, sizeof in) > 0,
               "the sleeper's read");
}

static void floor_wake(struct floor *f)
{
    uint64_t out = 1;

    atomic_fetch_add(&f->shared->word, 1);
    if (f->way == BY_FUTEX)
        syscall(SYS_futex, &f->shared->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    else if (f->way == BY_SOCKET)
        floor_must(sendto(f->writes, "", 1, 0, (struct sockaddr *)&f->to, f->to_len) == 1, "sendto");
    else
        floor_must(write(f->writes, &out, sizeof out) == sizeof out, "write");
}

static void sleeper(struct floor *f, int count)
{
    bind_to(1);
    for (int i = 0; i < count; i++) {
        floor_sleep(f, (uint32_t)i);
        int64_t end = (int64_t)st_now_ns();
        printf("%.2f\n", (double)(end - f->shared->at) / 1e3);
        atomic_store(&f->shared->ready, (uint32_t)i + 1);
    }
    fflush(stdout);
    _exit(ferror(stdout) ? 1 : 0);
}

int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    struct floor f = {.way = BY_FUTEX};
    int count = argc == 3 ? atoi(argv[2]) : 0, status;

    while (argc == 3 && f.way < WAYS && strcmp(names[f.way], argv[1]) != 0)
        f.way++;
    if (count < 1 || f.way == WAYS) {
        fprintf(stderr, "usage: wake_floor futex|eventfd|socket|pipe|tcp COUNT\n");
        return 2;
    }
    floor_open(&f);
    pid_t child = fork();
    floor_must(child >= 0, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleeper(&f, count);
    }
    bind_to(0);
    for (int i = 0; i < count; i++) {
        do {
            nanosleep(&pause, NULL);
            if (waitpid(child, &status, WNOHANG) != 0)
                return 1;
        } while (atomic_load(&f.shared->ready) != (uint32_t)i);
        f.shared->at = (int64_t)st_now_ns();
        floor_wake(&f);
    }
    waitpid(child, &status, 0);
    return status != 0;
}
