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

#define BYTES 4096u

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "pid_reuse: line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct address {
    uint32_t qpn, rkey;
    uint16_t lid;
};
struct side {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct address address;
};

static char *memory; /* at the same place in all processes */

static void make(struct side *s)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
    struct ibv_port_attr port;

    NEED(pd && ibv_query_port(c, 1, &port) == 0);
    NEED(s->mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    NEED(s->cq = ibv_create_cq(c, 16, NULL, NULL, 0));
    struct ibv_qp_init_attr init = {.send_cq = s->cq,
                                    .recv_cq = s->cq,
                                    .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    NEED(s->qp = ibv_create_qp(pd, &init));
    s->address = (struct address){s->qp->qp_num, s->mr->rkey, port.lid};
}

static void join(struct side *s, const struct address *to)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    NEED(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = to->qpn,
                             .ah_attr = {.dlid = to->lid, .port_num = 1},
                             .min_rnr_timer = 1};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 3};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

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

    make(&s);
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
    make(&s);
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
