/* A process is stopped or killed while it adds a completion to another's queue, and a second one adds behind it.
 * Killed: what is behind comes before a hundred looks at the queue, a millisecond each. Stopped: the owner resizes the
 * queue; what is behind comes, and when the first goes on its own completion comes as well, once. Run it with
 * libsofthca preloaded. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "side.h"

#define ATTEMPTS 20
#define LOOKS    100

struct child {
    struct side here; /* our end of its connection */
    pid_t pid;
    int fd;
};

static void post(struct side *s, bool receive)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, s->mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    NEED((receive ? ibv_post_recv(s->qp, &recv, &bad_recv) : ibv_post_send(s->qp, &send, &bad)) == 0);
}

/* Sends when it is told to. Says so before and after. */
static _Noreturn void sender(int fd, const char *faults)
{
    struct side s;
    struct address to;
    char go;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    NEED(setenv("SOFTHCA_FAULTS", faults, 1) == 0);
    make(&s, NULL);
    NEED(write(fd, &s.address, sizeof s.address) == sizeof s.address && read(fd, &to, sizeof to) == sizeof to);
    join(&s, &to);
    NEED(write(fd, "", 1) == 1 && read(fd, &go, 1) == 1 && write(fd, "", 1) == 1);
    post(&s, false);
    NEED(write(fd, "", 1) == 1);
    for (;;)
        pause();
}

static void start(struct child *c, struct ibv_cq *cq, const char *faults)
{
    int fd[2];
    struct address to;
    char ready;

    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    c->pid = fork();
    if (c->pid == 0)
        sender(fd[1], faults);
    NEED(c->pid > 0 && close(fd[1]) == 0);
    c->fd = fd[0];
    make(&c->here, cq);
    NEED(read(c->fd, &to, sizeof to) == sizeof to);
    NEED(write(c->fd, &c->here.address, sizeof to) == sizeof to);
    join(&c->here, &to);
    post(&c->here, true);
    NEED(read(c->fd, &ready, 1) == 1);
}

static void end(struct child *c)
{
    struct ibv_pd *pd = c->here.qp->pd;

    (void)kill(c->pid, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
    (void)close(c->fd);
    NEED(ibv_destroy_qp(c->here.qp) == 0 && ibv_dereg_mr(c->here.mr) == 0 && ibv_dealloc_pd(pd) == 0);
}

static void send_now(const struct child *c)
{
    char begun;

    NEED(write(c->fd, "", 1) == 1 && read(c->fd, &begun, 1) == 1);
}

/* How many receives of the child's message are found. */
static int found(struct ibv_cq *cq, const struct child *c, int wanted)
{
    struct ibv_wc wc;
    int n = 0;

    for (int i = 0; i < LOOKS && (n == 0 || wanted == 0); i++) {
        int got = ibv_poll_cq(cq, 1, &wc);
        NEED(got >= 0 && (got == 0 || wc.status == IBV_WC_SUCCESS));
        n += got == 1 && wc.qp_num == c->here.qp->qp_num;
        usleep(1000);
    }
    return n;
}

/* In the middle of adding, as far as can be told from here. */
static bool caught(const struct child *c)
{
    char done;
    int status;

    send_now(c);
    usleep(5000);
    NEED(kill(c->pid, SIGSTOP) == 0 && waitpid(c->pid, &status, WUNTRACED) == c->pid && WIFSTOPPED(status));
    return recv(c->fd, &done, 1, MSG_DONTWAIT) != 1;
}

static bool attempt(bool killed)
{
    struct child slow, quick;
    struct ibv_cq *cq;
    struct ibv_context *context;
    bool right = true, was_caught;
    char done;

    start(&slow, NULL, "stall 1");
    cq = slow.here.cq;
    context = cq->context;
    start(&quick, cq, "clear");
    was_caught = caught(&slow);
    if (was_caught) {
        send_now(&quick);
        NEED(read(quick.fd, &done, 1) == 1);
        if (killed)
            NEED(kill(slow.pid, SIGKILL) == 0);
        else
            NEED(ibv_resize_cq(cq, 64) == 0);
        right = found(cq, &quick, 1) == 1;
        if (!right)
            printf("what came behind it was not found\n");
        if (!killed) {
            NEED(kill(slow.pid, SIGCONT) == 0 && read(slow.fd, &done, 1) == 1);
            int n = found(cq, &slow, 0);
            if (n != 1)
                printf("what it added when it went on was found %d times\n", n);
            right &= n == 1;
        }
    }
    end(&slow);
    end(&quick);
    NEED(ibv_destroy_cq(cq) == 0 && ibv_close_device(context) == 0);
    if (!right)
        exit(1);
    return was_caught;
}

int main(int argc, char **argv)
{
    bool killed = argc > 1 && strcmp(argv[1], "killed") == 0;
    int n = 0;

    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED);
    for (int i = 0; i < ATTEMPTS && n < 3; i++)
        n += attempt(killed);
    printf("%d caught in the middle\n", n);
    return n > 0 ? 0 : 1;
}
