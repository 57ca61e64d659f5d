#include "support/peer.h"
#include "support/require.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer peer_start(void (*fn)(int fd, void *arg), void *arg)
{
    int fds[2];
    REQUIRE_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(3);
        const char *device = getenv("VERBS_PEER_DEVICE");
        if (device)
            setenv("VERBS_DEVICE", device, 1);
        fn(fds[1], arg);
        fflush(NULL);
        _exit(0);
    }
    close(fds[1]);
    return (struct peer){pid, fds[0]};
}

void peer_finish(struct peer *p)
{
    int status = 0;
    REQUIRE_EQ(waitpid(p->pid, &status, 0), p->pid);
    close(p->fd);
    REQUIRE_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the peer process failed: wait status %#x", status);
}

void peer_kill(struct peer *p)
{
    REQUIRE_OK(kill(p->pid, SIGKILL));
    REQUIRE_EQ(waitpid(p->pid, NULL, 0), p->pid);
    close(p->fd);
}

void tell(int fd, const void *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = send(fd, (const char *)p + done, n - done, MSG_NOSIGNAL);
        REQUIRE_MSG(got > 0, "the other process is gone");
        done += (size_t)got;
    }
}

void hear(int fd, void *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = recv(fd, (char *)p + done, n - done, 0);
        REQUIRE_MSG(got > 0, "the other process is gone");
        done += (size_t)got;
    }
}

void meet(int fd)
{
    char c = 'm';
    tell(fd, &c, 1);
    hear(fd, &c, 1);
    REQUIRE_EQ(c, 'm');
}

struct end_address end_join(struct end *e, int fd)
{
    struct end_address mine = end_address(e), theirs;
    tell(fd, &mine, sizeof mine);
    hear(fd, &theirs, sizeof theirs);
    end_connect(e, &theirs);
    meet(fd);
    return theirs;
}
