/* What the measuring loops share. Included after a port header, which says what send, receive and wait are: the loops
 * themselves exist once, for Strata and for MPI. */
#ifndef PERF_LOOPS_SUPPORT_H
#define PERF_LOOPS_SUPPORT_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "exchange_ball.h"
#include "options.h"
#include "report.h"

enum { TAG_DATA = 1, TAG_ACK = 2, TAG_BARRIER = 3, TAG_GATHER = 4, TAG_MARK = 5, TAG_OTHER = 1000 };

struct loops {
    struct port *p;
    const struct perf_options *o;
    struct perf_report *report; /* used by rank 0 */
    char *sbuf, *rbuf;          /* one message, or the messages of a window; o->offset into a page, and touched */
    size_t buf_size;
    size_t turn;     /* messages sent or received in sbuf or rbuf so far, for --cold */
    double *samples; /* o->batches */
    port_req *reqs;  /* 2 * window */
    struct exchange_side sides;
    double *exchange; /* o->batches + 1 with --exchange at the first pair, else NULL; us */
};

static char *pages(struct port *p, size_t size)
{
    void *m = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        port_fail(p, "no memory for the message buffers", 0);
    memset(m, 1, size);
    return m;
}

/* Everybody has arrived before anybody leaves: dissemination, over the library under test. */
static void barrier(struct port *p)
{
    char in = 0, out = 0;
    for (int d = 1; d < p->n; d *= 2)
        port_sendrecv(p, &out, &in, 1, (p->rank + d) % p->n, (p->rank - d + p->n) % p->n, TAG_BARRIER);
}

/* Brings `n` doubles of ranks 0, step, 2 step, ... to rank 0, rank after rank in `all`. */
static void gather(struct port *p, const double *mine, size_t n, int n_ranks, double *all)
{
    if (p->rank != 0) {
        if (p->rank < n_ranks)
            port_send(p, mine, n * sizeof *mine, 0, TAG_GATHER);
        return;
    }
    memcpy(all, mine, n * sizeof *mine);
    for (int r = 1; r < n_ranks; r++)
        port_recv(p, all + (size_t)r * n, n * sizeof *mine, r, TAG_GATHER);
}

/* Element by element the largest, or the sum, of ranks 0..n_ranks-1, in rank 0's array. */
static void gather_into(struct loops *l, double *values, size_t n, int n_ranks, bool sum)
{
    double *all = malloc((n * (size_t)n_ranks + 1) * sizeof *all);
    if (!all)
        port_fail(l->p, "out of memory", 0);
    gather(l->p, values, n, n_ranks, all);
    for (size_t i = n; l->p->rank == 0 && i < n * (size_t)n_ranks; i++) {
        double *v = &values[i % n];
        *v = sum ? *v + all[i] : all[i] > *v ? all[i] : *v;
    }
    free(all);
}

static void gather_max(struct loops *l, double *values, size_t n, int n_ranks)
{
    gather_into(l, values, n, n_ranks, false);
}

static void gather_sum(struct loops *l, double *values, size_t n, int n_ranks)
{
    gather_into(l, values, n, n_ranks, true);
}

/* The payload of message `seed` for --check: eight bytes at a time, different at each place and in each message. */
static inline uint64_t pattern_word(uint64_t seed, size_t i)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + i;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9u;
}

static __attribute__((noinline)) void fill(char *buf, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = pattern_word(seed, i);
        memcpy(buf + i, &w, len - i < 8 ? len - i : 8);
    }
}

static __attribute__((noinline)) void verify(struct port *p, const char *buf, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = pattern_word(seed, i);
        if (memcmp(buf + i, &w, len - i < 8 ? len - i : 8) != 0) {
            char text[120];
            snprintf(text, sizeof text, "--check: message %llu of %zu bytes is wrong at byte %zu",
                     (unsigned long long)seed, len, i);
            port_fail(p, text, 0);
        }
    }
}

/* Iterations per batch unless --iters says: a batch takes about a millisecond or a few over shared memory. */
static size_t iterations(const struct perf_options *o, size_t bytes, size_t small)
{
    if (o->iters)
        return o->iters;
    if (bytes <= 8192)
        return small;
    if (bytes <= 65536)
        return small / 4;
    if (bytes <= 524288)
        return small / 20;
    return small / 50;
}

/* Bytes of the largest cache of a processor. Each side of a pair sends from so much memory and receives into as much
 * (--cold). Where the machine does not say, as some virtual ones: 64 MiB. */
static size_t largest_cache(void)
{
    long most = sysconf(_SC_LEVEL4_CACHE_SIZE), third = sysconf(_SC_LEVEL3_CACHE_SIZE);
    most = most > third ? most : third;
    return most > 0 ? (size_t)most : (size_t)64 << 20;
}

/* Place of the k-th message of a window in `buf`. With --cold messages take turns in all of it, over all windows. */
static inline char *message_at(const struct loops *l, char *buf, size_t bytes, size_t slot, size_t k)
{
    size_t step = perf_slot_size(bytes);

    if (!l->o->cold)
        return buf + k * slot;
    return buf + (l->turn + k) % (l->buf_size / step) * step;
}

static size_t next_size(size_t bytes)
{
    return bytes ? bytes * 2 : 1;
}

static void note(struct loops *l, size_t bytes)
{
    if (l->p->rank == 0) {
        char text[80], b[24];
        perf_size_text(bytes, b);
        snprintf(text, sizeof text, "%s, %s%s", perf_test_name(l->o->test), b, strchr(b, 'B') ? "" : " bytes");
        perf_report_progress(l->report, text);
    }
}

static void show(struct loops *l, const char *kind, const char *unit, size_t bytes, size_t depth)
{
    struct perf_row row = {.kind = kind,
                           .unit = unit,
                           .bytes = bytes,
                           .depth = depth,
                           .samples = l->samples,
                           .exchange = l->exchange,
                           .n = l->o->batches};
    if (l->p->rank == 0)
        perf_report_row(l->report, &row);
}

#endif
