/* btl_sm alone between two processes: one-way times of messages that are streamed in fragments of several sizes, and of
 * messages that are moved by single copy. The defaults of its parameters were chosen from this table. All return codes
 * and all data are checked; times are medians over the batches.
 *
 *   sm_fragments [CORE0 CORE1 [NAME=VALUE]...]     parameters of btl_sm, sizes in bytes; also batches=N,
 *   only=stream|get, most=BYTES */
#define _GNU_SOURCE 1
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/idle.h>
#include "components/btl_sm/tests/rig.h"
#include "median.h"

#define BIG          (4u << 20)
#define BATCHES_MOST 1000
#define RATE_BATCHES 11
#define RATE_COUNT   20000u

struct head {
    uint32_t kind, size;
    uint64_t offset, address;
};
enum { KIND_DATA, KIND_READY, KIND_FINISHED, KIND_BACK };

struct bench {
    struct rig_rank rig;
    struct st_btl_endpoint *ep;
    uint8_t *out, *in;
    size_t got;
    uint32_t ready, finished, back;
    uint64_t address;
    struct st_btl_op op;
    int done, rc;
    bool first; /* this process sends first */
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- data ---- */

static uint8_t byte_of(size_t i, bool first)
{
    return (uint8_t)((i * 2654435761u) >> 24 ^ (first ? 0x5a : 0xa5));
}

static void fill(struct bench *b)
{
    for (size_t i = 0; i < BIG; i++)
        b->out[i] = byte_of(i, b->first);
}

/* Every byte of the other process's message is there. */
static void verify(const struct bench *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        RIG_CHECK(b->in[i] == byte_of(i, !b->first));
}

static void deliver(void *arg, const struct st_frag *f)
{
    struct bench *b = arg;
    struct head h;
    RIG_CHECK(f->hdr_len == sizeof h);
    memcpy(&h, f->hdr, sizeof h);
    if (h.kind == KIND_DATA) {
        RIG_CHECK(f->len <= h.size && h.offset <= h.size - f->len && h.size <= BIG);
        memcpy(b->in + h.offset, f->data, f->len);
        b->got += f->len;
    } else if (h.kind == KIND_READY) {
        b->address = h.address;
        b->ready++;
    } else if (h.kind == KIND_FINISHED) {
        b->finished++;
    } else {
        RIG_CHECK(h.kind == KIND_BACK);
        b->back++;
    }
}

static void op_done(struct st_btl_op *op, int rc)
{
    struct bench *b = (struct bench *)(void *)((char *)op - offsetof(struct bench, op));
    b->rc = rc;
    b->done = 1;
}

/* ---- messages ---- */

/* As upper layers wait. */
static void poll_once(struct bench *b)
{
    if (b->rig.btl->ops->progress(b->rig.btl) == 0)
        st_relax();
}

static void send_one(struct bench *b, const struct head *h, const uint8_t *data, uint32_t n)
{
    int rc;
    while ((rc = b->rig.btl->ops->send(b->ep, ST_AM_TEST, h, sizeof *h, data, n)) == STRATA_ERR_AGAIN)
        b->rig.btl->ops->progress(b->rig.btl);
    RIG_CHECK(rc == STRATA_OK);
}

static void tell(struct bench *b, uint32_t kind, uint64_t address)
{
    struct head h = {.kind = kind, .address = address};
    send_one(b, &h, NULL, 0);
}

static void put_message(struct bench *b, size_t size, uint32_t fragment)
{
    uint32_t n;
    for (size_t at = 0; at < size; at += n) {
        struct head h = {.kind = KIND_DATA, .size = (uint32_t)size, .offset = at};
        n = size - at < fragment ? (uint32_t)(size - at) : fragment;
        send_one(b, &h, b->out + at, n);
    }
}

static void take_message(struct bench *b, size_t size)
{
    while (b->got < size)
        poll_once(b);
    RIG_CHECK(b->got == size);
    b->got = 0;
}

static void ping_stream(struct bench *b, size_t size, uint32_t fragment)
{
    if (b->first)
        put_message(b, size, fragment);
    take_message(b, size);
    if (!b->first)
        put_message(b, size, fragment);
}

static void offer(struct bench *b)
{
    tell(b, KIND_READY, (uint64_t)(uintptr_t)b->out);
    while (!b->finished)
        poll_once(b);
    b->finished = 0;
}

static void fetch(struct bench *b, size_t size)
{
    while (!b->ready)
        poll_once(b);
    b->ready = 0;
    b->done = 0;
    int rc = b->rig.btl->rdma->get(b->ep, b->in, b->address, NULL, size, NULL, &b->op);
    RIG_CHECK(rc == STRATA_OK || rc == 1); /* 1: finished at once, done is not called */
    while (rc == STRATA_OK && !b->done)
        b->rig.btl->ops->progress(b->rig.btl);
    RIG_CHECK(rc == 1 || b->rc == STRATA_OK);
    tell(b, KIND_FINISHED, 0);
}

static void ping_get(struct bench *b, size_t size)
{
    if (b->first)
        offer(b);
    fetch(b, size);
    if (!b->first)
        offer(b);
}

/* ---- times ---- */

static void ping(struct bench *b, size_t size, uint32_t fragment)
{
    if (fragment)
        ping_stream(b, size, fragment);
    else
        ping_get(b, size);
}

/* One-way time of a message in us, median over the batches; fragment 0: single copy. Of the two batches that warm up
 * every message is checked, of the others the last. */
static double measure(struct bench *b, size_t size, uint32_t fragment, int batches)
{
    double t[BATCHES_MOST];
    int per = size <= 4096 ? 1000 : size <= 65536 ? 100 : size <= (1 << 20) ? 10 : 4;
    for (int k = -2; k < batches; k++) {
        memset(b->in, 0, size);
        double start = now_us();
        for (int i = 0; i < per; i++) {
            ping(b, size, fragment);
            if (k < 0) {
                verify(b, size);
                memset(b->in, 0, size);
            }
        }
        if (k >= 0) {
            t[k] = (now_us() - start) / per / 2;
            verify(b, size);
        }
    }
    return median(t, batches);
}

/* Messages a microsecond in one direction, median over the batches. */
static double message_rate(struct bench *b, uint32_t size)
{
    double rate[RATE_BATCHES];
    for (int k = 0; k < RATE_BATCHES; k++) {
        double start = now_us();
        if (b->first) {
            for (uint32_t i = 0; i < RATE_COUNT; i++)
                put_message(b, size, size);
            while (!b->back)
                poll_once(b);
            b->back = 0;
        } else {
            take_message(b, (size_t)RATE_COUNT * size);
            verify(b, size);
            memset(b->in, 0, size);
            tell(b, KIND_BACK, 0);
        }
        rate[k] = RATE_COUNT / (now_us() - start);
    }
    return median(rate, RATE_BATCHES);
}

static void print_times(struct bench *b, size_t size, int batches, const char *only)
{
    static const uint32_t fragments[] = {1024, 2048, 4096, 8192, 16384, 32768};
    if (b->first)
        printf("%8zu", size);
    for (size_t i = 0; i < sizeof fragments / sizeof fragments[0] && strcmp(only, "get") != 0; i++) {
        if ((i && fragments[i - 1] >= size) || fragments[i] > b->rig.btl->max_send)
            continue;
        double t = measure(b, size, fragments[i], batches);
        if (b->first)
            printf("  %u:%.3f", fragments[i], t);
    }
    if (size >= 4096 && (sm_peer(b->ep)->ep.caps & ST_BTL_GET) && strcmp(only, "stream") != 0) {
        double t = measure(b, size, 0, batches);
        if (b->first)
            printf("  get:%.3f", t);
    }
    if (b->first)
        printf("\n");
    fflush(stdout);
}

/* ---- options ---- */

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    RIG_CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    size_t n = strlen(name);
    for (int i = 3; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    return otherwise;
}

static void set_parameters(struct sm_params *par, int argc, char **argv)
{
    for (size_t i = 0; i < st_component_btl_sm.n_params; i++) {
        const struct st_param *r = &st_component_btl_sm.params[i];
        const char *v = option(argc, argv, r->name, NULL);
        char *at = (char *)par + r->offset;
        if (!v)
            continue;
        if (r->type == ST_PARAM_SIZE)
            *(size_t *)(void *)at = strtoull(v, NULL, 0);
        else if (r->type == ST_PARAM_INT)
            *(int64_t *)(void *)at = strtoll(v, NULL, 0);
        else
            *(int *)(void *)at = atoi(v);
    }
}

static void start(struct bench *b, struct rig_board *board, int argc, char **argv)
{
    if (argc > 2)
        pin(atoi(argv[b->first ? 1 : 2]));
    rig_init(&b->rig, board, b->first ? 0 : 1);
    b->rig.par.max_send = 32768;
    set_parameters(&b->rig.par, argc, argv);
    rig_open(&b->rig);
    b->rig.btl->am[ST_AM_TEST].fn = deliver;
    b->rig.btl->am[ST_AM_TEST].arg = b;
    b->op.done = op_done;
    b->out = aligned_alloc(4096, BIG);
    b->in = aligned_alloc(4096, BIG);
    RIG_CHECK(b->out && b->in);
    fill(b);
    memset(b->in, 0, BIG);
    b->ep = rig_connect(&b->rig, b->first ? 1 : 0);
}

/* Nothing comes any more from a process that has failed. */
static void child_ended(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (info->si_code != CLD_EXITED || info->si_status != 0)
        _exit(1);
}

int main(int argc, char **argv)
{
    struct rig_board *board = rig_board(2);
    struct bench *b = calloc(1, sizeof *b);
    int batches = atoi(option(argc, argv, "batches", "21")), status = 1;
    size_t most = strtoull(option(argc, argv, "most", "4194304"), NULL, 0);
    RIG_CHECK(b && batches >= 1 && batches <= BATCHES_MOST && most <= BIG);
    struct sigaction on_end = {.sa_sigaction = child_ended, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP};
    RIG_CHECK(sigaction(SIGCHLD, &on_end, NULL) == 0);
    pid_t child = fork();
    RIG_CHECK(child >= 0);
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);

    b->first = child != 0;
    start(b, board, argc, argv);
    if (b->first)
        printf("   bytes  FRAGMENT:us ..., one way, medians of %d batches\n", batches);
    for (int i = 0; i < 100; i++)
        ping_stream(b, 8, 8); /* until both have a ring */
    for (size_t size = 8; size <= most; size *= size < 512 ? 8u : size < 16384 ? 2u : 4u)
        print_times(b, size, batches, option(argc, argv, "only", "both"));
    for (uint32_t size = 8; size <= 8192; size *= 4) {
        double rate = message_rate(b, size);
        if (b->first)
            printf("%8u  %.2f million messages/s\n", size, rate);
    }
    rig_fence(&b->rig);
    rig_close(&b->rig);
    free(b->out);
    free(b->in);
    if (!b->first)
        _exit(0);
    free(b);
    RIG_CHECK(waitpid(child, &status, 0) == child);
    return status != 0;
}
