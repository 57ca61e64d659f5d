/* Measures this transport alone between two processes: one-way time of messages streamed in fragments of several sizes
 * and of messages moved by single copy. Prints a table from which the defaults of the parameters were chosen.
 *
 *   tune_long_test [CORE0 CORE1 [PARAMETER=VALUE]...]     values in bytes; also batches=N, only=stream|get,
 *   most=BYTES */
#define _GNU_SOURCE 1
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <strata/sdk/idle.h>
#include "rig.h"

#define BIG (4u << 20)

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
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static enum st_deliver deliver(void *arg, const struct st_frag *f)
{
    struct bench *b = arg;
    struct head h;
    memcpy(&h, f->hdr, sizeof h);
    if (h.kind == KIND_DATA) {
        memcpy(b->in + h.offset, f->data, f->len);
        b->got += f->len;
    } else if (h.kind == KIND_READY) {
        b->address = h.address;
        b->ready++;
    } else if (h.kind == KIND_FINISHED) {
        b->finished++;
    } else {
        b->back++;
    }
    return ST_DONE;
}

static void op_done(struct st_btl_op *op, int rc)
{
    struct bench *b = (struct bench *)(void *)((char *)op - offsetof(struct bench, op));
    b->rc = rc;
    b->done = 1;
}

static void tell(struct bench *b, uint32_t kind, uint64_t address)
{
    struct head h = {.kind = kind, .address = address};
    while (b->rig.btl->ops->send(b->ep, ST_AM_TEST, &h, sizeof h, NULL, 0) == STRATA_ERR_AGAIN)
        b->rig.btl->ops->progress(b->rig.btl);
}

static void put_message(struct bench *b, size_t size, uint32_t piece)
{
    size_t at = 0;
    while (at < size) {
        uint32_t n = size - at < piece ? (uint32_t)(size - at) : piece;
        struct head h = {.kind = KIND_DATA, .size = (uint32_t)size, .offset = at};
        if (b->rig.btl->ops->send(b->ep, ST_AM_TEST, &h, sizeof h, b->out + at, n) == STRATA_OK)
            at += n;
        else
            b->rig.btl->ops->progress(b->rig.btl);
    }
}

/* As upper layers wait. */
static void poll_once(struct bench *b)
{
    if (b->rig.btl->ops->progress(b->rig.btl) == 0)
        st_relax();
}

static void take_message(struct bench *b, size_t size)
{
    while (b->got < size)
        poll_once(b);
    b->got = 0;
}

static void ping_stream(struct bench *b, bool first, size_t size, uint32_t piece)
{
    if (first)
        put_message(b, size, piece);
    take_message(b, size);
    if (!first)
        put_message(b, size, piece);
}

static void offer(struct bench *b)
{
    tell(b, KIND_READY, (uint64_t)(uintptr_t)b->out);
    while (!b->finished)
        b->rig.btl->ops->progress(b->rig.btl);
    b->finished = 0;
}

static void fetch(struct bench *b, size_t size)
{
    int rc;
    while (!b->ready)
        b->rig.btl->ops->progress(b->rig.btl);
    b->ready = 0;
    b->done = 0;
    rc = b->rig.btl->ops->get(b->ep, b->in, b->address, NULL, size, NULL, &b->op);
    while (rc == STRATA_OK && !b->done)
        b->rig.btl->ops->progress(b->rig.btl);
    tell(b, KIND_FINISHED, 0);
}

static void ping_get(struct bench *b, bool first, size_t size)
{
    if (first)
        offer(b);
    fetch(b, size);
    if (!first)
        offer(b);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, c = *(const double *)y;
    return a < c ? -1 : a > c;
}

/* One-way time in us, median of batches; piece 0: single copy. */
static double measure(struct bench *b, bool first, size_t size, uint32_t piece, int batches)
{
    batches = batches < 1 ? 1 : batches > 1000 ? 1000 : batches;
    double t[1000];
    int per = size <= 4096 ? 1000 : size <= 65536 ? 100 : size <= (1 << 20) ? 10 : 4;
    for (int k = -2; k < batches; k++) {
        double start = now_us();
        for (int i = 0; i < per; i++) {
            if (piece)
                ping_stream(b, first, size, piece);
            else
                ping_get(b, first, size);
        }
        if (k >= 0)
            t[k] = (now_us() - start) / per / 2;
    }
    qsort(t, (size_t)batches, sizeof t[0], by_value);
    return t[batches / 4]; /* lower quartile: what the code costs, not what the neighbours do */
}

static double message_rate(struct bench *b, bool first, uint32_t size)
{
    double best = 0;
    for (int k = 0; k < 10; k++) {
        double start = now_us();
        for (int i = 0; i < 20000 && first; i++)
            put_message(b, size, size);
        while (!first && b->got < (size_t)20000 * size)
            poll_once(b);
        b->got = 0;
        if (first) {
            while (!b->back)
                b->rig.btl->ops->progress(b->rig.btl);
            b->back = 0;
        } else {
            tell(b, KIND_BACK, 0);
        }
        double r = 20000 / (now_us() - start);
        best = r > best ? r : best;
    }
    return best;
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static const char *option(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);
    for (int i = 3; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    return NULL;
}

static void configure(struct sm_params *par, int argc, char **argv)
{
    for (size_t i = 0; i < st_component_btl_sm.n_params; i++) {
        const struct st_param *r = &st_component_btl_sm.params[i];
        const char *v = option(argc, argv, r->name);
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

int main(int argc, char **argv)
{
    static const uint32_t pieces[] = {1024, 2048, 4096, 8192, 16384, 32768};
    struct rig_board *board = rig_board(2);
    struct bench *b = calloc(1, sizeof *b);
    int batches = option(argc, argv, "batches") ? atoi(option(argc, argv, "batches")) : 21;
    const char *only = option(argc, argv, "only");
    size_t most = option(argc, argv, "most") ? strtoull(option(argc, argv, "most"), NULL, 0) : BIG;
    pid_t child = fork();
    bool first = child != 0;

    if (argc > 2)
        pin(atoi(argv[first ? 1 : 2]));
    rig_init(&b->rig, board, first ? 0 : 1);
    b->rig.par.max_send = 32768;
    configure(&b->rig.par, argc, argv);
    rig_open(&b->rig);
    b->rig.btl->am[ST_AM_TEST].fn = deliver;
    b->rig.btl->am[ST_AM_TEST].arg = b;
    b->op.done = op_done;
    b->out = aligned_alloc(4096, BIG);
    b->in = aligned_alloc(4096, BIG);
    memset(b->out, 1, BIG);
    memset(b->in, 2, BIG);
    b->ep = rig_connect(&b->rig, first ? 1 : 0);
    for (int i = 0; i < 100; i++)
        ping_stream(b, first, 8, 8); /* into the rings */
    for (size_t size = 8; size <= most; size *= size < 512 ? 8u : size < 16384 ? 2u : 4u) {
        if (first)
            printf("%8zu", size);
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0] && !(only && *only == 'g'); i++) {
            if ((i && pieces[i - 1] >= size) || pieces[i] > b->rig.btl->max_send)
                continue;
            double t = measure(b, first, size, pieces[i], batches);
            if (first)
                printf("  %u:%.3f", pieces[i], t);
        }
        if (size >= 4096 && b->rig.par.single_copy != SM_COPY_OFF && !(only && *only == 's')) {
            double t = measure(b, first, size, 0, batches);
            if (first)
                printf("  get:%.3f", t);
        }
        if (first)
            printf("\n");
        fflush(stdout);
    }
    for (uint32_t size = 8; size <= 8192; size *= 4) {
        double rate = message_rate(b, first, size);
        if (first)
            printf("%u rate:%.2f M/s\n", size, rate);
    }
    rig_fence(&b->rig);
    rig_close(&b->rig);
    free(b->out);
    free(b->in);
    free(b);
    if (!first)
        _exit(0);
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
}
