/* Collectives whose blocks pass 2 GiB each and 4 GiB together: coll_huge KIND..., of kinds below. They need no such
 * memory: a buffer to receive into is a window of memory that is mapped again and again, one to send from is zeros, of
 * which the system has one page. Both have pages of their own around the places where a length or an offset of 31 or 32
 * bits ends: those of each block, and its last bytes. What is there tells whose it is and which offset it had, so that
 * a block that is cut, or lies elsewhere, is found. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <strata/coll.h>

#define GIB    ((size_t)1 << 30)
#define WINDOW ((size_t)1 << 20)
#define ODD    ((size_t)1543 * sizeof(uint64_t)) /* by which blocks are longer than the limits; of no page */
enum { PAGE = 4096, EDGE = 4096, EDGES = 4, MOST_RANKS = 8 };

static strata_t *job;

/* n blocks, each `stride` bytes behind the last. */
struct blocks {
    char *base;
    size_t mapped, block, stride;
    int n;
};

static _Noreturn void fail(const char *kind, const char *what)
{
    printf("rank %d: FAILED: %s: %s\n", strata_rank(job), kind, what);
    fflush(stdout);
    strata_abort(job, EXIT_FAILURE, what);
    abort();
}

/* Edge i of a block, bytes [*from, *to) of it. False: it is shorter. */
static bool edge(size_t block, int i, size_t *from, size_t *to)
{
    const size_t places[EDGES] = {0, 2 * GIB, 4 * GIB, block}, at = places[i];
    if (at > block)
        return false;
    *from = at > EDGE ? at - EDGE : 0;
    *to = block - at > EDGE ? at + EDGE : block;
    return true;
}

/* The word at an offset of the blocks that a rank gives. */
static uint64_t word(int rank, size_t at)
{
    uint64_t x = (uint64_t)at + ((uint64_t)rank << 56) + 1;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static void *must_map(void *at, size_t length, int protection, int flags, int fd)
{
    void *p = mmap(at, length, protection, flags, fd, 0);
    if (p == MAP_FAILED)
        fail("memory", "a buffer cannot be mapped");
    return p;
}

/* Pages are mapped at once: a page fault for each costs more than copying it. */
static void map_window(const struct blocks *b)
{
    int fd = memfd_create("huge", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)WINDOW) != 0)
        fail("memory", "no memfd");
    for (size_t at = 0; at < b->mapped; at += WINDOW)
        must_map(b->base + at, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd);
    close(fd);
}

/* A buffer that nobody may write to: one huge page of zeros, where the system has such pages. */
static void map_zeros(const struct blocks *b)
{
    must_map(b->base, b->mapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1);
    madvise(b->base, b->mapped, MADV_HUGEPAGE);
}

static struct blocks blocks_map(int n, size_t block, size_t stride, void (*map)(const struct blocks *))
{
    struct blocks b = {.block = block, .stride = stride, .n = n};
    size_t from, to, length = (size_t)(n - 1) * stride + block;
    b.mapped = (length + WINDOW - 1) / WINDOW * WINDOW;
    b.base = must_map(NULL, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    map(&b);
    for (int i = 0; i < n; i++)
        for (int e = 0; e < EDGES; e++)
            if (edge(block, e, &from, &to)) {
                size_t begin = ((size_t)i * stride + from) / PAGE * PAGE, end = (size_t)i * stride + to;
                must_map(b.base + begin, (end - begin + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
            }
    return b;
}

/* The input of this rank. */
static void blocks_fill(const struct blocks *b)
{
    size_t from, to;
    for (int i = 0; i < b->n; i++)
        for (int e = 0; e < EDGES; e++)
            for (bool is = edge(b->block, e, &from, &to); is && from < to; from += sizeof(uint64_t)) {
                size_t at = (size_t)i * b->stride + from;
                uint64_t w = word(strata_rank(job), at);
                memcpy(b->base + at, &w, sizeof(w));
            }
}

/* Block i has come from offset `first` of a rank's; of all ranks, added, if `rank` is negative. */
static void blocks_check(const char *kind, const struct blocks *b, int i, int rank, size_t first)
{
    size_t from, to;
    char text[120];
    for (int e = 0; e < EDGES; e++)
        for (bool is = edge(b->block, e, &from, &to); is && from < to; from += sizeof(uint64_t)) {
            uint64_t got, want = 0;
            for (int r = 0; r < strata_size(job); r++)
                want += rank < 0 || r == rank ? word(r, first + from) : 0;
            memcpy(&got, b->base + (size_t)i * b->stride + from, sizeof(got));
            if (got == want)
                continue;
            snprintf(text, sizeof(text), "block %d of %zu bytes is wrong at byte %zu", i, b->block, from);
            fail(kind, text);
        }
}

static void add(void *arg, const void *in, void *inout, size_t count)
{
    const uint64_t *x = in;
    uint64_t *y = inout;
    (void)arg;
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

static const struct kind {
    const char *name;
    strata_coll_kind_t kind;
    bool sends_all, gets_all; /* blocks of all ranks, not one */
    bool differs;             /* counts and offsets by rank */
} kinds[] = {
    {"bcast", STRATA_BCAST, false, false, false},         {"alltoall", STRATA_ALLTOALL, true, true, false},
    {"alltoallv", STRATA_ALLTOALLV, true, true, true},    {"allgather", STRATA_ALLGATHER, false, true, false},
    {"allgatherv", STRATA_ALLGATHERV, false, true, true}, {"gather", STRATA_GATHER, false, true, false},
    {"scatter", STRATA_SCATTER, true, false, false},      {"allreduce", STRATA_ALLREDUCE, false, false, false},
    {"reduce", STRATA_REDUCE, false, false, false},
};

/* Checks what has come. */
static void kind_check(const struct kind *k, const struct blocks *in, const struct blocks *out, int root)
{
    size_t mine = k->sends_all ? (size_t)strata_rank(job) * out->stride : 0;
    bool reduces = k->kind == STRATA_ALLREDUCE || k->kind == STRATA_REDUCE;
    if ((k->kind == STRATA_GATHER || k->kind == STRATA_REDUCE) && strata_rank(job) != root)
        return;
    for (int i = 0; i < in->n; i++)
        blocks_check(k->name, in, i, reduces ? -1 : k->gets_all ? i : root, mine);
}

static void run(const struct kind *k)
{
    int n = strata_size(job), root = n - 1;
    bool bcast = k->kind == STRATA_BCAST, at_root = strata_rank(job) == root;
    bool gets = bcast ? !at_root : at_root || (k->kind != STRATA_GATHER && k->kind != STRATA_REDUCE);
    /* One that goes alone passes 4 GiB; with a gap a later one begins beyond. */
    size_t block = (k->sends_all || k->gets_all ? 2 : 4) * GIB + ODD, stride = block + (k->differs ? 2 * GIB : 0);
    size_t counts[MOST_RANKS], offsets[MOST_RANKS];
    struct blocks out = blocks_map(k->sends_all ? n : 1, block, stride, map_zeros);
    struct blocks in = blocks_map(k->gets_all ? n : 1, block, stride, gets ? map_window : map_zeros);
    strata_coll_t c = STRATA_COLL_INIT(k->kind);
    for (int i = 0; i < n; i++) {
        counts[i] = block / sizeof(uint64_t);
        offsets[i] = (size_t)i * stride / sizeof(uint64_t);
    }
    blocks_fill(bcast && at_root ? &in : &out);
    c.send = out.base;
    c.recv = in.base;
    c.element = sizeof(uint64_t);
    c.count = block / c.element;
    c.root = root;
    c.send_counts = c.recv_counts = counts;
    c.send_offsets = c.recv_offsets = offsets;
    c.reduce = add;
    int rc = strata_coll(strata_world(job), &c);
    if (rc != STRATA_OK)
        fail(k->name, strata_strerror(rc));
    kind_check(k, &in, &out, root);
    munmap(out.base, out.mapped);
    munmap(in.base, in.mapped);
    printf("rank %d: %s of %zu bytes\n", strata_rank(job), k->name, block);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (strata_init(NULL, &job) != STRATA_OK)
        return EXIT_FAILURE;
    if (strata_size(job) > MOST_RANKS)
        fail("ranks", "there are too many");
    for (int i = 1; i < argc; i++) {
        size_t k = 0, n_kinds = sizeof(kinds) / sizeof(kinds[0]);
        while (k < n_kinds && strcmp(kinds[k].name, argv[i]) != 0)
            k++;
        if (k == n_kinds)
            fail(argv[i], "no such kind");
        run(&kinds[k]);
    }
    return strata_finalize(job) == STRATA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
