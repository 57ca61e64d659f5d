/* A process ends, and another gets its pid, with memory at the same addresses: what its peers go on to write must not
 * get there. 77: this process may not choose pids. Run it with libsofthca preloaded. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "side.h"

/* Writes our memory to the peer's. */
static enum ibv_wc_status write_to(struct side *s, const struct address *to)
{
    struct ibv_sge sge = {(uintptr_t)memory, BYTES, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)memory, to->rkey}},
                       *bad;
    struct ibv_wc wc;
    int got;

    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    while ((got = ibv_poll_cq(s->cq, 1, &wc)) == 0)
        usleep(100);
    NEED(got == 1);
    return wc.status;
}

static _Noreturn void owner(int fd)
{
    struct side s;
    struct address to;

    make(&s, NULL);
    NEED(write(fd, &s.address, sizeof s.address) == sizeof s.address && read(fd, &to, sizeof to) == sizeof to);
    join(&s, &to);
    NEED(write(fd, "", 1) == 1);
    for (;;)
        pause();
}

/* Ends with 0 if nobody wrote to its memory until it was told that all is over. */
static _Noreturn void other(int fd)
{
    char told;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < BYTES; i++)
        memory[i] = 0;
    if (write(fd, "", 1) != 1 || read(fd, &told, 1) != 1)
        _exit(2);
    for (unsigned i = 0; i < BYTES; i++)
        if (memory[i])
            _exit(3);
    _exit(0);
}

static pid_t fork_as(pid_t pid)
{
    pid_t set[] = {pid};
    struct clone_args a = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)set, .set_tid_size = 1};

    return (pid_t)syscall(SYS_clone3, &a, sizeof a);
}

int main(void)
{
    int with_owner[2], with_other[2], status;
    struct side s;
    struct address to;
    pid_t pid, same;
    char c;

    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, with_owner) == 0 &&
         socketpair(AF_UNIX, SOCK_STREAM, 0, with_other) == 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        owner(with_owner[1]);
    }
    memset(memory, 0x5a, BYTES);
    make(&s, NULL);
    NEED(read(with_owner[0], &to, sizeof to) == sizeof to);
    NEED(write(with_owner[0], &s.address, sizeof s.address) == sizeof s.address);
    join(&s, &to);
    NEED(read(with_owner[0], &c, 1) == 1);
    NEED(write_to(&s, &to) == IBV_WC_SUCCESS);

    NEED(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    same = fork_as(pid);
    if (same == 0)
        other(with_other[1]);
    if (same < 0) {
        printf("SKIPPED: no process can be made with a pid of our choice: %s\n", strerror(errno));
        return 77;
    }
    NEED(same == pid && read(with_other[0], &c, 1) == 1);
    enum ibv_wc_status how = write_to(&s, &to);
    NEED(write(with_other[0], "", 1) == 1 && waitpid(same, &status, 0) == same);
    printf("a write to the pid of one that has ended: %s; the other process: %s\n", ibv_wc_status_str(how),
           WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "left alone" : "written to");
    return how == IBV_WC_RETRY_EXC_ERR && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
