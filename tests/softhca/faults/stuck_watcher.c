/* The word by which a process says that its watcher of registered memory is at work stays set, because a broken peer
 * wrote it (own) or the process is stopped or broken itself (peer). Who uses regions goes on: a use may wait once, not
 * each time. Waits are counted as calls of sched_yield(2), which libsofthca finds here. Run it with libsofthca
 * preloaded. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/softhca/device/own_segment.h"
#include "side.h"

#define WRITES 100u
#define MOST   (WRITES * 20u)

static _Atomic(unsigned) yields;

__attribute__((visibility("default"))) int sched_yield(void)
{
    yields++;
    return (int)syscall(SYS_sched_yield);
}

static void write_once(struct side *s, uint32_t rkey)
{
    struct ibv_sge sge = {(uintptr_t)memory, 64, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)memory + 64, rkey}},
                       *bad;
    struct ibv_wc wc;
    int got;

    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    while ((got = ibv_poll_cq(s->cq, 1, &wc)) == 0)
        ;
    NEED(got == 1 && wc.status == IBV_WC_SUCCESS);
}

static void set_word(void)
{
    char *segment = own_segment(PROT_READ | PROT_WRITE);

    atomic_store(&((struct hca_header *)(void *)segment)->watching, 1);
    NEED(munmap(segment, HCA_SIZE) == 0);
}

/* Has memory that is written to, and says nothing. */
static _Noreturn void target(int fd, bool stuck)
{
    struct side s;
    struct address to;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    make(&s, NULL);
    NEED(write(fd, &s.address, sizeof s.address) == sizeof s.address && read(fd, &to, sizeof to) == sizeof to);
    join(&s, &to);
    if (stuck)
        set_word();
    NEED(write(fd, "", 1) == 1);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const bool own = argc == 2 && strcmp(argv[1], "own") == 0;
    struct address to;
    struct side s;
    char ready;
    int fd[2];
    pid_t pid;

    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    pid = fork();
    if (pid == 0)
        target(fd[1], !own);
    NEED(pid > 0);
    make(&s, NULL);
    NEED(read(fd[0], &to, sizeof to) == sizeof to && write(fd[0], &s.address, sizeof to) == sizeof to);
    join(&s, &to);
    NEED(read(fd[0], &ready, 1) == 1);
    if (own)
        set_word();
    write_once(&s, to.rkey);
    yields = 0;
    for (unsigned i = 0; i < WRITES; i++)
        write_once(&s, to.rkey);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    printf("%u writes with %u waits, at most %u\n", WRITES, yields, MOST);
    return yields > MOST;
}
