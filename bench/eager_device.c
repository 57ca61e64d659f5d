/* Latency of the operations that eager RDMA could be made of, by libibverbs alone, between two processes: figures 1, 4
 * and 7 of "High Performance RDMA-Based MPI Implementation over InfiniBand". `bench/eager_device ROUNDS [SIZE...]`
 * prints "OPERATION BYTES US" for each round, half of a round trip, the operations in turn. Started by
 * bench/eager_rdma.sh. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "median.h"

enum {
    DEPTH = 128,
    EVERY = 32,     /* posts, of which one is signalled */
    TRIPS = 20,     /* round trips of a batch: short, so that most are not interrupted */
    BATCHES = 21,   /* of a figure, which is their median */
    BUFFER = 65536, /* out: the first half, in: the second */
    IN = BUFFER / 2,
    FLAG = 8, /* bytes of a flag of its own */
    MOST = IN - 64,
    INLINE = 188,
};

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "bench/eager_device: line %d: %s\n", __LINE__, #condition);                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* In each of them the last byte of what is sent has a value that the receiver waits for, or there is a completion. */
enum operation { SEND, WRITE, WRITE_IMM, TWO_WRITES, GATHER, OPERATIONS };
static const char *const names[OPERATIONS] = {"send", "write", "write_imm", "two_writes", "gather"};

struct address {
    uint64_t at;
    uint32_t qpn, rkey;
    union ibv_gid gid;
    uint16_t lid;
};
struct side {
    struct ibv_context *context;
    struct ibv_cq *sends, *receives;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory;
    struct address peer;
    unsigned posted;
    uint8_t value; /* of the last byte, or of the flag: 1 to 255 */
    int fd;        /* the other process */
};

static double microseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- connecting ---- */

static void make(struct side *s)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = {.cap = {DEPTH, DEPTH, 2, 1, INLINE}, .qp_type = IBV_QPT_RC};
    struct ibv_pd *pd;
    int file = memfd_create("eager_device", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    NEED(list && list[0]);
    NEED((s->context = ibv_open_device(list[0])) != NULL);
    ibv_free_device_list(list);
    NEED((pd = ibv_alloc_pd(s->context)) != NULL);
    NEED((init.send_cq = s->sends = ibv_create_cq(s->context, DEPTH, NULL, NULL, 0)) != NULL);
    NEED((init.recv_cq = s->receives = ibv_create_cq(s->context, DEPTH, NULL, NULL, 0)) != NULL);
    NEED((s->qp = ibv_create_qp(pd, &init)) != NULL);
    /* Such memory softhca writes by stores. */
    NEED(file >= 0 && ftruncate(file, BUFFER) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    s->memory = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    NEED(s->memory != MAP_FAILED);
    memset(s->memory, 0, BUFFER);
    NEED((s->mr = ibv_reg_mr(pd, s->memory, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
}

static void join(struct side *s)
{
    struct ibv_port_attr port;
    struct address mine = {.at = (uintptr_t)s->memory, .qpn = s->qp->qp_num, .rkey = s->mr->rkey};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    bool ethernet;

    NEED(ibv_query_port(s->context, 1, &port) == 0);
    mine.lid = port.lid;
    ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    /* Soft-RoCE's second GID is that of its IPv4 address. */
    NEED(!ethernet || ibv_query_gid(s->context, 1, 1, &mine.gid) == 0);
    NEED(write(s->fd, &mine, sizeof mine) == sizeof mine);
    NEED(recv(s->fd, &s->peer, sizeof s->peer, MSG_WAITALL) == sizeof s->peer);
    NEED(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = port.active_mtu,
                             .dest_qp_num = s->peer.qpn,
                             .min_rnr_timer = 1,
                             .ah_attr = {.dlid = s->peer.lid, .port_num = 1}};
    if (ethernet) {
        a.ah_attr.is_global = 1;
        a.ah_attr.grh = (struct ibv_global_route){.dgid = s->peer.gid, .sgid_index = 1, .hop_limit = 64};
    }
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- operations ---- */

static void take(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    NEED(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void post_receive(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->memory + IN, MOST, s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    NEED(ibv_post_recv(s->qp, &wr, &bad) == 0);
}

/* The flag lies behind the data, at both ends. */
static void post(struct side *s, enum operation what, uint32_t bytes)
{
    struct ibv_sge sge[2] = {{(uintptr_t)s->memory, bytes, s->mr->lkey},
                             {(uintptr_t)s->memory + bytes, FLAG, s->mr->lkey}};
    struct ibv_send_wr *bad, second, wr = {.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    bool apart = what == TWO_WRITES || what == GATHER, last = ++s->posted % EVERY == 0;

    s->value = (uint8_t)(s->value % 255 + 1);
    s->memory[apart ? bytes + FLAG - 1 : bytes - 1] = (char)s->value;
    wr.wr.rdma.remote_addr = s->peer.at + IN;
    wr.wr.rdma.rkey = s->peer.rkey;
    wr.send_flags = bytes <= INLINE ? IBV_SEND_INLINE : 0;
    if (what == SEND)
        wr.opcode = IBV_WR_SEND;
    else if (what == WRITE_IMM)
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    else if (what == GATHER) {
        wr.num_sge = 2;
        wr.send_flags = bytes + FLAG <= INLINE ? IBV_SEND_INLINE : 0;
    }
    second = wr;
    if (what == TWO_WRITES) {
        second.sg_list = sge + 1;
        second.wr.rdma.remote_addr += bytes;
        second.send_flags = IBV_SEND_INLINE | (last ? IBV_SEND_SIGNALED : 0);
        wr.next = &second;
    } else if (last) {
        wr.send_flags |= IBV_SEND_SIGNALED;
    }
    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    if (last)
        take(s->sends);
}

static void await(struct side *s, enum operation what, uint32_t bytes)
{
    const char *at = s->memory + IN + bytes + (what == TWO_WRITES || what == GATHER ? FLAG : 0) - 1;
    uint8_t next = (uint8_t)(s->value % 255 + 1);

    if (what == SEND || what == WRITE_IMM) {
        take(s->receives);
        post_receive(s);
        return;
    }
    while (atomic_load_explicit((const _Atomic(uint8_t) *)(const void *)at, memory_order_acquire) != next)
        ;
}

/* The second process answers with the value of the question. */
static void trips(struct side *s, enum operation what, uint32_t bytes, bool first, int n)
{
    for (int i = 0; i < n; i++) {
        if (first) {
            post(s, what, bytes);
            s->value = (uint8_t)(s->value == 1 ? 255 : s->value - 1);
        }
        await(s, what, bytes);
        if (first)
            s->value = (uint8_t)(s->value % 255 + 1);
        else
            post(s, what, bytes);
    }
}

/* Half of a round trip. */
static double figure(struct side *s, enum operation what, uint32_t bytes, bool first)
{
    double us[BATCHES], begin;

    trips(s, what, bytes, first, TRIPS);
    for (int i = 0; i < BATCHES; i++) {
        begin = microseconds();
        trips(s, what, bytes, first, TRIPS);
        us[i] = (microseconds() - begin) / (2 * TRIPS);
    }
    return median(us, BATCHES);
}

static void meet(const struct side *s)
{
    char word = 0;

    NEED(write(s->fd, &word, 1) == 1 && recv(s->fd, &word, 1, MSG_WAITALL) == 1);
}

static void run(struct side *s, bool first, int rounds, const uint32_t *size, int n_sizes)
{
    for (int i = 0; i < DEPTH / 2; i++)
        post_receive(s);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < n_sizes; i++)
            for (int what = 0; what < OPERATIONS; what++) {
                double us;
                meet(s);
                memset(s->memory, 0, BUFFER);
                meet(s);
                us = figure(s, (enum operation)what, size[i], first);
                if (first)
                    printf("%s %u %.4f\n", names[what], size[i], us);
            }
    meet(s);
}

/* On a processor each, if there are two. */
static void pin(int which)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    which %= CPU_COUNT(&all);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && which-- == 0)
            CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0, fd[2], status, n = 0;
    uint32_t size[32] = {8};
    struct side s = {.value = 0};
    pid_t child;

    for (int i = 2; i < argc && n < 32; i++)
        size[n++] = (uint32_t)strtoul(argv[i], NULL, 10);
    if (n == 0)
        n = 1;
    for (int i = 0; i < n; i++)
        if (size[i] == 0 || size[i] > MOST)
            rounds = 0;
    if (rounds < 1) {
        fprintf(stderr, "usage: eager_device ROUNDS [BYTES...], of 1 to %d bytes\n", MOST);
        return 2;
    }
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    fflush(stdout);
    NEED((child = fork()) >= 0);
    if (child == 0)
        NEED(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    s.fd = fd[child == 0];
    pin(child == 0);
    make(&s);
    join(&s);
    run(&s, child != 0, rounds, size, n);
    if (child == 0)
        _exit(0);
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
