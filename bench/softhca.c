/* softhca between two processes, by libibverbs alone: latency of a small send and of small RDMA writes, bandwidth of
 * RDMA writes beside the kernel's own copy, and what a post and a poll cost beside the system call that they contain.
 * The kinds take turns, round after round, and medians are printed. `bench/softhca ROUNDS` measures, `bench/softhca
 * count N` posts and polls N times inside post_and_poll, for an instruction counter. What posts and polls cost is said
 * with SOFTHCA_SHORT=0. Started by bench/softhca.sh, which preloads softhca. */
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
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "median.h"

enum {
    DEPTH = 1024, /* entries of the queues */
    WINDOW = 256, /* sends in a row that nobody answers */
    MESSAGE = 8,  /* bytes */
    WINDOWS = 20, /* of a round */
    TRIPS = 200,  /* round trips of a batch: short, so that most are not interrupted */
    BATCHES = 20, /* of a round */
    ROUNDS = 99,  /* at most */
    BUFFER = 4 << 20,
    PAGE = 4096,
};

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "bench/softhca: line %d: %s\n", __LINE__, #condition);                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Where words are written to: anonymous memory, to which the kernel copies, and a file that softhca maps. */
enum place { ANONYMOUS, MAPPED, PLACES };

struct address {
    uint64_t buffer, words[PLACES];
    uint32_t qpn, rkey, words_rkey[PLACES];
    pid_t pid;
    uint16_t lid;
};
struct side {
    struct ibv_context *context;
    struct ibv_cq *sends, *receives;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer;
    _Atomic(uint64_t) *words[PLACES];
    struct ibv_mr *words_mr[PLACES];
    uint64_t word; /* the last one written */
    struct address peer;
    uint64_t posted; /* sends and writes of words; every WINDOW-th is signalled and frees those before it */
    int fd;          /* the other process */
};

static void tell(int fd, const void *p, size_t n)
{
    NEED(write(fd, p, n) == (ssize_t)n);
}
static void hear(int fd, void *p, size_t n)
{
    NEED(recv(fd, p, n, MSG_WAITALL) == (ssize_t)n);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- connecting ---- */

/* A page that the peer writes words to. */
static void make_words(struct side *s, struct ibv_pd *pd, enum place place)
{
    int file = -1;
    void *at;

    if (place == MAPPED) {
        file = memfd_create("words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        NEED(file >= 0 && ftruncate(file, PAGE) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    }
    at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    NEED(at != MAP_FAILED);
    s->words[place] = at;
    NEED((s->words_mr[place] = ibv_reg_mr(pd, at, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
}

static void make(struct side *s)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_pd *pd;
    struct ibv_qp_init_attr init = {
        .cap = {DEPTH, DEPTH, 1, 1, MESSAGE},
        .qp_type = IBV_QPT_RC,
    };

    NEED(list && list[0]);
    s->context = ibv_open_device(list[0]);
    NEED(s->context);
    ibv_free_device_list(list);
    NEED((pd = ibv_alloc_pd(s->context)) != NULL);
    NEED((init.send_cq = s->sends = ibv_create_cq(s->context, DEPTH, NULL, NULL, 0)) != NULL);
    NEED((init.recv_cq = s->receives = ibv_create_cq(s->context, DEPTH, NULL, NULL, 0)) != NULL);
    NEED((s->qp = ibv_create_qp(pd, &init)) != NULL);
    s->buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(s->buffer != MAP_FAILED);
    memset(s->buffer, 1, BUFFER);
    NEED((s->mr = ibv_reg_mr(pd, s->buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
    for (int i = 0; i < PLACES; i++)
        make_words(s, pd, (enum place)i);
}

static void announce(const struct side *s)
{
    struct ibv_port_attr port;
    struct address mine = {.buffer = (uintptr_t)s->buffer, .qpn = s->qp->qp_num, .rkey = s->mr->rkey, .pid = getpid()};

    NEED(ibv_query_port(s->context, 1, &port) == 0);
    mine.lid = port.lid;
    for (int i = 0; i < PLACES; i++) {
        mine.words[i] = (uintptr_t)s->words[i];
        mine.words_rkey[i] = s->words_mr[i]->rkey;
    }
    tell(s->fd, &mine, sizeof mine);
}

static void join(struct side *s)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    NEED(ibv_query_port(s->context, 1, &port) == 0);
    hear(s->fd, &s->peer, sizeof s->peer);
    NEED(ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = port.active_mtu,
                             .dest_qp_num = s->peer.qpn,
                             .min_rnr_timer = 1,
                             .ah_attr = {.dlid = s->peer.lid, .port_num = 1}};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
    NEED(ibv_modify_qp(s->qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- what is measured ---- */

static void post_receives(struct side *s, int n)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer, MESSAGE, s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    for (int i = 0; i < n; i++)
        NEED(ibv_post_recv(s->qp, &wr, &bad) == 0);
}

static void take(struct ibv_cq *cq, int n)
{
    struct ibv_wc wc;

    while (n > 0) {
        int got = ibv_poll_cq(cq, 1, &wc);
        NEED(got >= 0 && (got == 0 || wc.status == IBV_WC_SUCCESS));
        n -= got;
    }
}

static void send_small(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer, MESSAGE, 0};
    bool last = ++s->posted % WINDOW == 0;
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_INLINE | (last ? IBV_SEND_SIGNALED : 0)};

    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    if (last)
        take(s->sends, 1);
}

/* Both sides. A receive is there before the message that it is for is asked for. */
static void trips(struct side *s, bool first, int n)
{
    for (int i = 0; i < n; i++) {
        if (first)
            send_small(s);
        take(s->receives, 1);
        post_receives(s, 1);
        if (!first)
            send_small(s);
    }
}

/* Writes the next word, inline, as a send is. */
static void write_word(struct side *s, enum place place)
{
    bool last = ++s->posted % WINDOW == 0;
    struct ibv_sge sge = {(uintptr_t)&s->word, sizeof s->word, 0};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_INLINE | (last ? IBV_SEND_SIGNALED : 0),
                                   .wr.rdma = {s->peer.words[place], s->peer.words_rkey[place]}};

    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    if (last)
        take(s->sends, 1);
}

/* Both sides: each polls its memory for what the other writes. */
static void write_trips(struct side *s, enum place place, bool first, int n)
{
    for (int i = 0; i < n; i++) {
        s->word++;
        if (first)
            write_word(s, place);
        while (atomic_load_explicit(s->words[place], memory_order_acquire) != s->word)
            ;
        if (!first)
            write_word(s, place);
    }
}

/* n sends, each followed by a poll that finds nothing. */
__attribute__((noinline)) static void post_and_poll(struct side *s, struct ibv_send_wr *wr, int n)
{
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    for (int i = 0; i < n; i++) {
        NEED(ibv_post_send(s->qp, wr, &bad) == 0);
        NEED(ibv_poll_cq(s->sends, 1, &wc) == 0);
    }
}

/* The peer's receives are posted, and it sleeps. ns each. */
static double window(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer, MESSAGE, 0};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    double begin = seconds(), end;

    post_and_poll(s, &wr, WINDOW - 1);
    end = seconds();
    wr.send_flags |= IBV_SEND_SIGNALED;
    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    take(s->sends, 1);
    return (end - begin) / (WINDOW - 1) * 1e9;
}

/* The same bytes to the same place by the bare system call, ns each. */
static double window_of_copies(const struct side *s)
{
    struct iovec from = {s->buffer, MESSAGE}, to = {(void *)(uintptr_t)s->peer.buffer, MESSAGE};
    double begin = seconds();

    for (int i = 0; i < WINDOW - 1; i++)
        NEED(process_vm_writev(s->peer.pid, &from, 1, &to, 1, 0) == MESSAGE);
    return (seconds() - begin) / (WINDOW - 1) * 1e9;
}

static int repetitions(size_t size)
{
    return (int)((48u << 20) / size);
}

/* GB/s */
static double writes(struct side *s, size_t size)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer, (uint32_t)size, s->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {s->peer.buffer, s->peer.rkey}};
    int n = repetitions(size);
    double begin = seconds();

    for (int i = 0; i < n; i++) {
        NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
        take(s->sends, 1);
    }
    return (double)size * n / (seconds() - begin) * 1e-9;
}

static double copies(const struct side *s, size_t size)
{
    struct iovec from = {s->buffer, size}, to = {(void *)(uintptr_t)s->peer.buffer, size};
    int n = repetitions(size);
    double begin = seconds();

    for (int i = 0; i < n; i++)
        NEED(process_vm_writev(s->peer.pid, &from, 1, &to, 1, 0) == (ssize_t)size);
    return (double)size * n / (seconds() - begin) * 1e-9;
}

/* ---- the other process ---- */

enum { DO_TRIPS, DO_WORDS, DO_WINDOW = DO_WORDS + PLACES, DO_END };

static void serve(struct side *s)
{
    char what;

    for (;;) {
        hear(s->fd, &what, 1);
        if (what == DO_END)
            return;
        if (what == DO_TRIPS) {
            tell(s->fd, &what, 1);
            trips(s, false, TRIPS * BATCHES);
        } else if (what < DO_WINDOW) {
            tell(s->fd, &what, 1);
            write_trips(s, (enum place)(what - DO_WORDS), false, TRIPS * BATCHES);
        } else {
            post_receives(s, WINDOW);
            tell(s->fd, &what, 1);
            hear(s->fd, &what, 1); /* asleep until all were sent */
            take(s->receives, WINDOW);
        }
    }
}

static void ask(struct side *s, char what)
{
    tell(s->fd, &what, 1);
    if (what != DO_END)
        hear(s->fd, &what, 1);
}

/* ---- figures ---- */

static void row(const char *what, double value, const char *unit, const char *target, bool met)
{
    printf("%-58s %9.2f %-5s %-11s %s\n", what, value, unit, target ? target : "",
           !target ? ""
           : met   ? "met"
                   : "missed");
}

#define SIZES 3
static const size_t sizes[SIZES] = {64 << 10, 1 << 20, 4 << 20};
struct figures {
    double latency[ROUNDS], words[PLACES][ROUNDS], whole[ROUNDS], bare[ROUNDS], own[ROUNDS];
    double write[SIZES][ROUNDS], copy[SIZES][ROUNDS], ratio[SIZES][ROUNDS];
};

static void print(struct figures *f, int rounds)
{
    double latency = median(f->latency, rounds), own = median(f->own, rounds);
    const char *limit = getenv("SOFTHCA_SHORT");
    bool by_kernel = limit && strcmp(limit, "0") == 0;
    char what[80];

    printf("# softhca, two processes%s; medians of %d rounds\n", by_kernel ? ", SOFTHCA_SHORT=0" : "", rounds);
    row("RC send of 8 bytes, inline: half a round trip", latency, "us", by_kernel ? NULL : "<= 3 us", latency <= 3);
    row("RDMA write of 8 bytes, inline: the same, anonymous memory", median(f->words[ANONYMOUS], rounds), "us", NULL,
        false);
    row("RDMA write of 8 bytes, inline: the same, a mapped file", median(f->words[MAPPED], rounds), "us", NULL, false);
    for (int i = 0; i < SIZES; i++) {
        double ratio = median(f->ratio[i], rounds);
        int kib = (int)(sizes[i] >> 10);
        snprintf(what, sizeof what, "RDMA write of %d KiB", kib);
        row(what, median(f->write[i], rounds), "GB/s", NULL, false);
        snprintf(what, sizeof what, "process_vm_writev of %d KiB", kib);
        row(what, median(f->copy[i], rounds), "GB/s", NULL, false);
        snprintf(what, sizeof what, "ratio at %d KiB", kib);
        row(what, ratio, "", sizes[i] == 1 << 20 ? ">= 0.8" : NULL, ratio >= 0.8);
    }
    if (!by_kernel) /* else there is no system call to be left out */
        return;
    row("post of an unsignalled inline send, and a poll: all of it", median(f->whole, rounds), "ns", NULL, false);
    row("process_vm_writev of the same 8 bytes", median(f->bare, rounds), "ns", NULL, false);
    row("post and poll: own code, the difference", own, "ns", "< 300 ns", own < 300);
}

static void round_of(struct side *s, struct figures *f, int r)
{
    double whole[WINDOWS], bare[WINDOWS], own[WINDOWS], trip[BATCHES];

    ask(s, DO_TRIPS);
    for (int i = 0; i < BATCHES; i++) {
        double begin = seconds();
        trips(s, true, TRIPS);
        trip[i] = (seconds() - begin) / TRIPS / 2 * 1e6;
    }
    f->latency[r] = median(trip, BATCHES);
    for (int place = 0; place < PLACES; place++) {
        ask(s, (char)(DO_WORDS + place));
        for (int i = 0; i < BATCHES; i++) {
            double begin = seconds();
            write_trips(s, (enum place)place, true, TRIPS);
            trip[i] = (seconds() - begin) / TRIPS / 2 * 1e6;
        }
        f->words[place][r] = median(trip, BATCHES);
    }
    for (int i = 0; i < SIZES; i++) {
        /* Whoever comes second finds the caches as the first left them. */
        if (r % 2)
            f->copy[i][r] = copies(s, sizes[i]);
        f->write[i][r] = writes(s, sizes[i]);
        if (r % 2 == 0)
            f->copy[i][r] = copies(s, sizes[i]);
        f->ratio[i][r] = f->write[i][r] / f->copy[i][r];
    }
    for (int i = 0; i < WINDOWS; i++) {
        ask(s, DO_WINDOW);
        whole[i] = window(s);
        bare[i] = window_of_copies(s);
        own[i] = whole[i] - bare[i];
        tell(s->fd, "", 1);
    }
    f->whole[r] = median(whole, WINDOWS);
    f->bare[r] = median(bare, WINDOWS);
    f->own[r] = median(own, WINDOWS);
}

static void measure(struct side *s, int rounds)
{
    static struct figures f;

    round_of(s, &f, 0); /* does not count */
    for (int r = 0; r < rounds; r++)
        round_of(s, &f, r);
    print(&f, rounds);
}

/* Both ends in this process: valgrind does not know the system calls by which processes find each other. */
static void count(struct side *s, struct side *other, int n)
{
    make(other);
    announce(s);
    announce(other);
    join(s);
    join(other);
    for (int i = 0; i < n; i++) {
        post_receives(other, WINDOW);
        (void)window(s);
        take(other->receives, WINDOW);
    }
    printf("%d\n", n * (WINDOW - 1));
}

/* Each process on one of the first two processors that we may use. */
static void bind_to(int which)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && which-- == 0)
            CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    bool counts = argc == 3 && strcmp(argv[1], "count") == 0;
    int n = argc >= 2 ? atoi(argv[argc - 1]) : 0, fd[2], status = 1;
    struct side s = {0}, other = {0};
    pid_t child;

    if (argc != 2 + counts || n < 1 || n > ROUNDS) {
        fprintf(stderr, "usage: %s ROUNDS | count WINDOWS\n", argv[0]);
        return 2;
    }
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    s.fd = fd[0];
    other.fd = fd[1];
    if (counts) {
        make(&s);
        count(&s, &other, n);
        return 0;
    }
    /* Before anything is opened: each process is a process of the fabric. */
    child = fork();
    NEED(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        s.fd = fd[1];
    }
    close(fd[child != 0]);
    bind_to(child == 0);
    make(&s);
    announce(&s);
    join(&s);
    post_receives(&s, WINDOW); /* of round trips: each is replaced when it was taken */
    if (child == 0) {
        serve(&s);
        _exit(0);
    }
    measure(&s, n);
    ask(&s, DO_END);
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
