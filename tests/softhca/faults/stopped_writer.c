/* A process is stopped or killed while it adds a completion to another's queue, and a second one adds behind it.
 * Killed: what is behind comes before a hundred looks at the queue, a millisecond each. Stopped: the owner resizes the
 * queue; what is behind comes, and when the first goes on its own completion comes as well, once. Flooded: two that are
 * stopped now and then add hundreds while the owner resizes the queue all the time; each comes once, and in order. Run
 * it with libsofthca preloaded. */
#define _GNU_SOURCE 1
#include <endian.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "side.h"

#define ATTEMPTS 1000 /* on a busy machine many catch nobody */
#define LOOKS    100
#define RECEIVES 4
#define FLOOD    400u

struct child {
    struct side here; /* our end of its connection */
    pid_t pid;
    int fd;
};

static void post_receive(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    NEED(ibv_post_recv(s->qp, &wr, &bad) == 0);
}

static void post_send(struct side *s, uint32_t number)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = htobe32(number)},
                       *bad;

    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
}

/* Sends n messages when it is told to. Says so before and after. */
static _Noreturn void sender(int fd, const char *faults, uint32_t n)
{
    struct side s;
    struct address to;
    struct ibv_wc wc;
    char go;
    int got;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    NEED(setenv("SOFTHCA_FAULTS", faults, 1) == 0);
    make(&s, NULL);
    NEED(write(fd, &s.address, sizeof s.address) == sizeof s.address && read(fd, &to, sizeof to) == sizeof to);
    join(&s, &to);
    NEED(write(fd, "", 1) == 1 && read(fd, &go, 1) == 1 && write(fd, "", 1) == 1);
    for (uint32_t i = 0; i < n; i++) {
        post_send(&s, i);
        while (n > 1 && (got = ibv_poll_cq(s.cq, 1, &wc)) != 1)
            NEED(got == 0);
        NEED(n == 1 || wc.status == IBV_WC_SUCCESS);
    }
    NEED(write(fd, "", 1) == 1);
    for (;;)
        pause();
}

static void start(struct child *c, struct ibv_cq *cq, const char *faults, uint32_t n)
{
    int fd[2];
    struct address to;
    char ready;

    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    c->pid = fork();
    if (c->pid == 0)
        sender(fd[1], faults, n);
    NEED(c->pid > 0 && close(fd[1]) == 0);
    c->fd = fd[0];
    make(&c->here, cq);
    NEED(read(c->fd, &to, sizeof to) == sizeof to);
    NEED(write(c->fd, &c->here.address, sizeof to) == sizeof to);
    join(&c->here, &to);
    for (int i = 0; i < RECEIVES; i++)
        post_receive(&c->here);
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

/* In the middle of adding, as far as can be told from here: it has not said that it is done, nor is anything there. */
static bool caught(const struct child *c)
{
    struct ibv_wc wc;
    char done;
    int status;

    send_now(c);
    usleep(5000);
    NEED(kill(c->pid, SIGSTOP) == 0 && waitpid(c->pid, &status, WUNTRACED) == c->pid && WIFSTOPPED(status));
    return recv(c->fd, &done, 1, MSG_DONTWAIT) != 1 && ibv_poll_cq(c->here.cq, 1, &wc) == 0;
}

static bool attempt(bool killed)
{
    struct child slow, quick;
    struct ibv_cq *cq;
    struct ibv_context *context;
    bool right = true, was_caught;
    char done;

    start(&slow, NULL, "stall 1", 1);
    cq = slow.here.cq;
    context = cq->context;
    start(&quick, cq, "clear", 1);
    was_caught = caught(&slow);
    if (was_caught) {
        send_now(&quick);
        NEED(read(quick.fd, &done, 1) == 1);
        siginfo_t over;
        if (killed)
            NEED(kill(slow.pid, SIGKILL) == 0 && waitid(P_PID, (id_t)slow.pid, &over, WEXITED | WNOWAIT) == 0);
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

/* One is stopped wherever it is, and the queue replaced under it. */
static void disturb(const struct child *c, struct ibv_cq *cq)
{
    NEED(kill(c->pid, SIGSTOP) == 0);
    usleep(500);
    NEED(ibv_resize_cq(cq, 16) == 0 && ibv_resize_cq(cq, 512) == 0);
    NEED(kill(c->pid, SIGCONT) == 0);
}

static void flood(void)
{
    struct child c[2];
    uint32_t next[2] = {0}, n = 0;
    struct ibv_wc wc;
    int got;

    start(&c[0], NULL, "stall 7", FLOOD);
    struct ibv_cq *cq = c[0].here.cq;
    struct ibv_context *context = cq->context;
    start(&c[1], cq, "stall 11", FLOOD);
    for (int i = 0; i < 2; i++)
        send_now(&c[i]);
    while (next[0] < FLOOD || next[1] < FLOOD) {
        if ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
            continue;
        uint32_t from = wc.qp_num == c[1].here.qp->qp_num;
        NEED(got == 1 && wc.status == IBV_WC_SUCCESS);
        if (be32toh(wc.imm_data) != next[from]++) {
            printf("sender %u: message %u where %u was due\n", from, be32toh(wc.imm_data), next[from] - 1);
            exit(1);
        }
        post_receive(&c[from].here);
        if (++n % 8 == 0)
            NEED(ibv_resize_cq(cq, 16 << n / 8 % 4) == 0);
        if (n % 20 == 0)
            disturb(&c[n / 20 % 2], cq);
    }
    for (int i = 0; i < 2; i++)
        end(&c[i]);
    NEED(ibv_destroy_cq(cq) == 0 && ibv_close_device(context) == 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int n = 0;

    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED);
    if (strcmp(how, "flooded") == 0) {
        flood();
        printf("%u messages in order\n", 2 * FLOOD);
        return 0;
    }
    for (int i = 0; i < ATTEMPTS && n < 3; i++)
        n += attempt(strcmp(how, "killed") == 0);
    printf("%d caught in the middle\n", n);
    return n > 0 ? 0 : 1;
}
