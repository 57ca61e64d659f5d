/* The owner of a completion queue says that it replaces the ring, and does not come to an end. slow: it gets no
 * processor meanwhile, here since it sleeps; who adds a completion waits, longer than such work takes, and what it adds
 * is found. busy: it uses a processor and is therefore broken; who adds goes on without it. Run it with libsofthca
 * preloaded. */
#define _GNU_SOURCE 1
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/softhca/device/own_segment.h"
#include "side.h"

enum { SLEEP_MS = 2500 }; /* longer than the second of processor time that is granted */

static void say(int fd)
{
    NEED(write(fd, "", 1) == 1);
}

static void hear(int fd)
{
    char word;

    NEED(read(fd, &word, 1) == 1);
}

/* One that is connected with the other child by `other`. */
static void connected(struct side *s, int other)
{
    struct address to;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    make(s, NULL);
    NEED(write(other, &s->address, sizeof to) == sizeof to && read(other, &to, sizeof to) == sizeof to);
    join(s, &to);
}

static void set_moving(uint32_t moving)
{
    char *segment = own_segment(PROT_READ | PROT_WRITE);

    for (uint32_t i = 0; i < HCA_CQS; i++)
        if (atomic_load(&hca_cq_at(segment, i)->generation) != 0)
            atomic_store(&hca_cq_at(segment, i)->moving, moving);
    NEED(munmap(segment, HCA_SIZE) == 0);
}

static void await_completion(struct side *s)
{
    struct ibv_wc wc;
    int got;

    while ((got = ibv_poll_cq(s->cq, 1, &wc)) == 0)
        usleep(100);
    NEED(got == 1 && wc.status == IBV_WC_SUCCESS);
}

static _Noreturn void spin(void)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
}

static _Noreturn void owner(int other, int parent, bool busy)
{
    struct side s;

    connected(&s, other);
    struct ibv_sge sge = {(uintptr_t)memory, 8, s.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    NEED(ibv_post_recv(s.qp, &wr, &bad) == 0);
    set_moving(1);
    say(other);
    if (busy)
        spin();
    hear(parent);
    set_moving(0);
    await_completion(&s);
    say(parent);
    for (;;)
        pause();
}

static _Noreturn void sender(int other, int parent)
{
    struct side s;

    connected(&s, other);
    struct ibv_sge sge = {(uintptr_t)memory, 8, s.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    hear(other);
    say(parent);
    NEED(ibv_post_send(s.qp, &wr, &bad) == 0);
    await_completion(&s);
    say(parent);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const bool busy = argc == 2 && strcmp(argv[1], "busy") == 0;
    int between[2], to_owner[2], to_sender[2];
    pid_t pid[2];

    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, between) == 0);
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, to_owner) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, to_sender) == 0);
    if ((pid[0] = fork()) == 0)
        owner(between[0], to_owner[1], busy);
    if ((pid[1] = fork()) == 0)
        sender(between[1], to_sender[1]);
    NEED(pid[0] > 0 && pid[1] > 0);
    hear(to_sender[0]);
    struct pollfd sent = {.fd = to_sender[0], .events = POLLIN};
    const bool early = !busy && poll(&sent, 1, SLEEP_MS) != 0;
    if (!busy) {
        say(to_owner[0]);
        hear(to_owner[0]);
    }
    hear(to_sender[0]);
    for (int i = 0; i < 2; i++) {
        (void)kill(pid[i], SIGKILL);
        (void)waitpid(pid[i], NULL, 0);
    }
    printf("%s\n", early ? "the sender did not wait for the new ring" : "one completion added");
    return early;
}
