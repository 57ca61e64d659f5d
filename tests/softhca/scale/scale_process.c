/* One of many processes: connects with all others, exchanges a message over every queue pair, and, if asked to, goes on
 * sending until it has seen what becomes of the connections with processes that were killed. */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "scale.h"

enum { RECEIVES = 4, ENOUGH = 50 };
/* What the consumer asks for with a receive of one element, and with a completion. */
enum { RECEIVE_BYTES = 32, COMPLETION_BYTES = 64 };

struct end {
    struct ibv_qp *qp;
    uint32_t peer;
    bool sending, broken;
    uint64_t sent; /* since all that were killed have been noticed */
};
struct process {
    struct board *board;
    uint32_t me, n_ends, broken;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_port_attr port;
    uint64_t *inbox; /* one of each end */
    struct end *ends;
};

uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

void pause_us(long us)
{
    const struct timespec t = {0, us * 1000};

    nanosleep(&t, NULL);
}

#define NEED(p, condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            failed(p, __LINE__, #condition);                                                                           \
    } while (0)
_Noreturn static void failed(const struct process *p, int line, const char *what)
{
    fprintf(stderr, "process %u: line %d: not so: %s\n", p->me, line, what);
    atomic_store(&p->board->failed, 1);
    _exit(1);
}

static bool all_there(const struct process *p, enum step step)
{
    return atomic_load(&p->board->arrived[step]) + atomic_load(&p->board->victims) >= p->board->processes;
}

static void arrive(struct process *p, enum step step)
{
    atomic_fetch_add(&p->board->arrived[step], 1);
    if (all_there(p, step))
        atomic_store(&p->board->when_us[step], now_us());
}

static void meet(struct process *p, enum step step)
{
    arrive(p, step);
    while (!all_there(p, step)) {
        if (atomic_load(&p->board->failed))
            _exit(1);
        pause_us(500);
    }
}

/* ---- what it takes ---- */

static uint64_t status_kib(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

/* Bytes of the segment that have memory; counts the descriptors by the way. */
static uint64_t shared_bytes(uint64_t *descriptors)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *e;
    uint64_t bytes = 0;
    char path[300], target[64];
    struct stat st;

    *descriptors = 0;
    while (d && (e = readdir(d)) != NULL) {
        ssize_t n;
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        n = readlink(path, target, sizeof target - 1);
        if (n <= 0)
            continue;
        ++*descriptors;
        target[n] = 0;
        if (strncmp(target, "/memfd:softhca", 14) == 0 && stat(path, &st) == 0)
            bytes += (uint64_t)st.st_blocks * 512;
    }
    if (d)
        closedir(d);
    return bytes;
}

/* ---- connecting ---- */

static void open_device(struct process *p)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    NEED(p, list && list[0]);
    p->context = ibv_open_device(list[0]);
    NEED(p, p->context);
    ibv_free_device_list(list);
    NEED(p, ibv_query_port(p->context, 1, &p->port) == 0);
    NEED(p, (p->pd = ibv_alloc_pd(p->context)) != NULL);
    p->ends = calloc(p->n_ends, sizeof *p->ends);
    p->inbox = calloc(p->n_ends, sizeof *p->inbox);
    NEED(p, p->ends && p->inbox);
    p->mr = ibv_reg_mr(p->pd, p->inbox, p->n_ends * sizeof *p->inbox, IBV_ACCESS_LOCAL_WRITE);
    NEED(p, p->mr);
}

static void make(struct process *p)
{
    struct board *b = p->board;
    uint32_t i = 0;

    /* In traffic the receives that a flush returns come together with all else. */
    p->cq = ibv_create_cq(p->context, (int)(p->n_ends * (RECEIVES + 2)), NULL, NULL, 0);
    NEED(p, p->cq);
    for (uint32_t peer = 0; peer < b->processes; peer++) {
        for (uint32_t k = 0; peer != p->me && k < b->per_peer; k++, i++) {
            struct ibv_qp_init_attr init = {.send_cq = p->cq,
                                            .recv_cq = p->cq,
                                            .cap = {1, RECEIVES, 1, 1, sizeof(uint64_t)},
                                            .qp_type = IBV_QPT_RC,
                                            .sq_sig_all = 1};
            struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
            struct end *e = &p->ends[i];
            e->peer = peer;
            e->qp = ibv_create_qp(p->pd, &init);
            NEED(p, e->qp);
            e->qp->qp_context = e;
            NEED(p,
                 ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
            qpn_at(b, p->me, peer)[k] = e->qp->qp_num;
        }
    }
}

static void connect_all(struct process *p)
{
    for (uint32_t i = 0; i < p->n_ends; i++) {
        struct end *e = &p->ends[i];
        struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                                .path_mtu = p->port.active_mtu,
                                .dest_qp_num = qpn_at(p->board, e->peer, p->me)[i % p->board->per_peer],
                                .min_rnr_timer = 12,
                                .ah_attr = {.dlid = p->port.lid, .port_num = 1}};
        NEED(p, ibv_modify_qp(e->qp, &a,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
        a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 3, .rnr_retry = 7};
        NEED(p, ibv_modify_qp(e->qp, &a,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    }
}

/* ---- messages ---- */

/* Work requests are named by the end, and sends by a bit besides. */
#define SEND (1ull << 32)

static uint64_t message(const struct process *p, uint32_t from, uint32_t to, uint32_t k)
{
    return ((uint64_t)from * p->board->processes + to) * p->board->per_peer + k + 1;
}

static void post_receive(struct process *p, uint32_t i)
{
    struct ibv_sge sge = {(uintptr_t)&p->inbox[i], sizeof p->inbox[i], p->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    NEED(p, ibv_post_recv(p->ends[i].qp, &wr, &bad) == 0);
}

static void post_send(struct process *p, uint32_t i)
{
    struct end *e = &p->ends[i];
    uint64_t text = message(p, p->me, e->peer, i % p->board->per_peer);
    struct ibv_sge sge = {(uintptr_t)&text, sizeof text, 0};
    struct ibv_send_wr *bad,
        wr = {.wr_id = i | SEND, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};

    e->sending = true;
    NEED(p, ibv_post_send(e->qp, &wr, &bad) == 0);
}

/* A message has come; is it the right one? */
static void received(struct process *p, uint32_t i)
{
    NEED(p, p->inbox[i] == message(p, p->ends[i].peer, p->me, i % p->board->per_peer));
}

static void exchange(struct process *p)
{
    uint32_t sent = 0, came = 0;
    struct ibv_wc wc[16];

    for (uint32_t i = 0; i < p->n_ends; i++)
        post_send(p, i);
    while (sent < p->n_ends || came < p->n_ends) {
        int n = ibv_poll_cq(p->cq, 16, wc);
        NEED(p, n >= 0);
        for (int k = 0; k < n; k++) {
            uint32_t i = (uint32_t)wc[k].wr_id;
            NEED(p, wc[k].status == IBV_WC_SUCCESS);
            if (wc[k].wr_id & SEND) {
                p->ends[i].sending = false;
                sent++;
            } else {
                received(p, i);
                p->inbox[i] = 0;
                came++;
            }
        }
        if (atomic_load(&p->board->failed))
            _exit(1);
        if (n == 0)
            pause_us(500);
    }
}

/* ---- traffic, and what becomes of it when processes are killed ---- */

static void completed(struct process *p, const struct ibv_wc *wc)
{
    uint32_t i = (uint32_t)wc->wr_id;
    struct end *e = &p->ends[i];
    bool is_send = wc->wr_id & SEND;

    if (is_send)
        e->sending = false;
    if (wc->status == IBV_WC_SUCCESS && is_send) {
        atomic_fetch_add(&p->board->report[p->me].sends, 1);
        e->sent++;
        return;
    }
    if (wc->status == IBV_WC_SUCCESS) {
        received(p, i);
        if (!e->broken)
            post_receive(p, i);
        return;
    }
    /* Only with those that were killed, and the send tells it. */
    NEED(p, atomic_load(&p->board->victim[e->peer]));
    if (is_send) {
        NEED(p, wc->status == IBV_WC_RETRY_EXC_ERR && !e->broken);
        e->broken = true;
        p->broken++;
    } else {
        NEED(p, wc->status == IBV_WC_WR_FLUSH_ERR);
    }
}

/* The connections with all that were killed are broken, and those with all others have carried some more since. */
static bool satisfied(struct process *p, bool *noticed)
{
    uint32_t victims = atomic_load(&p->board->victims), enough = 0;

    if (victims == 0 || atomic_load(&p->board->stays) || p->broken < victims * p->board->per_peer)
        return false;
    for (uint32_t i = 0; i < p->n_ends; i++) {
        if (!*noticed)
            p->ends[i].sent = 0;
        enough += p->ends[i].broken || p->ends[i].sent >= ENOUGH;
    }
    *noticed = true;
    return enough == p->n_ends;
}

static void talk(struct process *p)
{
    bool content = false, noticed = false;
    struct ibv_wc wc[16];

    while (!content || !all_there(p, SATISFIED)) {
        int n;
        for (uint32_t i = 0; i < p->n_ends; i++)
            if (!p->ends[i].sending && !p->ends[i].broken)
                post_send(p, i);
        for (;;) {
            n = ibv_poll_cq(p->cq, 16, wc);
            NEED(p, n >= 0);
            for (int k = 0; k < n; k++)
                completed(p, &wc[k]);
            if (n == 0)
                break;
        }
        if (!content && satisfied(p, &noticed)) {
            content = true;
            arrive(p, SATISFIED);
        }
        if (atomic_load(&p->board->failed))
            _exit(1);
        pause_us(100);
    }
}

static void close_all(struct process *p)
{
    for (uint32_t i = 0; i < p->n_ends; i++)
        NEED(p, ibv_destroy_qp(p->ends[i].qp) == 0);
    NEED(p, ibv_destroy_cq(p->cq) == 0);
    NEED(p, ibv_dereg_mr(p->mr) == 0);
    NEED(p, ibv_dealloc_pd(p->pd) == 0);
    NEED(p, ibv_close_device(p->context) == 0);
    free(p->ends);
    free(p->inbox);
}

void scale_process(struct board *b, uint32_t me, int traffic)
{
    struct process p = {.board = b, .me = me, .n_ends = (b->processes - 1) * b->per_peer};
    struct report *r = &b->report[me];
    uint64_t unused;

    open_device(&p);
    r->shared_before = shared_bytes(&unused);
    meet(&p, OPENED);
    make(&p);
    meet(&p, MADE);
    connect_all(&p);
    for (uint32_t i = 0; i < p.n_ends; i++)
        for (int k = 0; k < RECEIVES; k++)
            post_receive(&p, i);
    meet(&p, CONNECTED);
    exchange(&p);
    r->shared = shared_bytes(&r->descriptors);
    r->asked_for = p.n_ends * (uint64_t)(RECEIVES * RECEIVE_BYTES + (RECEIVES + 2) * COMPLETION_BYTES);
    r->private_kib = status_kib("RssAnon");
    r->page_table_kib = status_kib("VmPTE");
    meet(&p, EXCHANGED);
    if (traffic) {
        for (uint32_t i = 0; i < p.n_ends; i++)
            post_receive(&p, i); /* in place of that which the exchange took */
        arrive(&p, TALKING);
        talk(&p);
        meet(&p, STOPPED); /* nobody looks any more when a peer's queue pairs go */
    }
    close_all(&p);
}
