/* Look-up in a cache of registrations: `bench/rcache [ROUNDS]`. For each number of entries: get of a buffer that is
 * registered as it is, get of a part of one, and get with its put, in random order; the best of the rounds, nanoseconds
 * each. Last, what a report of memory that went away costs the thread that frees it. Registering itself is free here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/rcache.h>
#include <time.h>
#include "support/random.h"
#include "support/world.h"

enum { PAGE = 4096, PAGES = 4, CALLS = 200000 };

static int make(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    (void)client, (void)len, (void)access;
    *handle = base;
    return STRATA_OK;
}

static void unmake(struct st_rcache_client *client, void *handle)
{
    (void)client, (void)handle;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

struct bench {
    struct st_rcache *cache;
    struct st_rcache_client client;
    uint32_t n;
    uint32_t *order;                /* CALLS indices of buffers */
    struct st_rcache_entry **found; /* CALLS */
};

static struct st_rcache_entry *get(struct bench *b, uint32_t i, size_t offset, size_t len)
{
    struct st_rcache_entry *e = NULL;
    /* Buffers lie apart: neighbours that touch would be an easier tree. */
    uintptr_t base = ((uintptr_t)1 << 32) + (uintptr_t)i * 2 * PAGES * PAGE;
    CHECK_OK(b->cache->ops->get(b->cache, &b->client, (void *)(base + offset), len, ST_RCACHE_LOCAL_WRITE, &e));
    return e;
}

/* ns per get; the puts are not counted. */
static double time_get(struct bench *b, size_t offset, size_t len)
{
    double start = now_ns();
    for (int i = 0; i < CALLS; i++)
        b->found[i] = get(b, b->order[i], offset, len);
    double ns = (now_ns() - start) / CALLS;
    for (int i = 0; i < CALLS; i++)
        b->cache->ops->put(b->cache, b->found[i]);
    return ns;
}

static double time_pair(struct bench *b)
{
    double start = now_ns();
    for (int i = 0; i < CALLS; i++)
        b->cache->ops->put(b->cache, get(b, b->order[i], 0, (size_t)PAGES * PAGE));
    return (now_ns() - start) / CALLS;
}

/* ns per report: of a page between the buffers, and of one below them all. */
static double time_report(struct bench *b, bool inside)
{
    double sum = 0;
    for (int k = 0; k < 100; k++) {
        double start = now_ns();
        for (uintptr_t i = 0; i < 500; i++) {
            uintptr_t page = inside ? ((uintptr_t)1 << 32) + PAGES * PAGE : (uintptr_t)1 << 30;
            b->cache->ops->invalidate(b->cache, page, page + PAGE);
        }
        sum += now_ns() - start;
        b->cache->ops->apply(b->cache);
    }
    return sum / 50000;
}

static void least(double *best, double value)
{
    if (*best == 0 || value < *best)
        *best = value;
}

static void run(struct bench *b, uint32_t n, int rounds)
{
    struct rnd rnd = {n};
    double best[5] = {0};
    b->n = n;
    CHECK_OK(b->cache->ops->attach(b->cache, &b->client));
    /* Registered in random order, so that the entries are not in memory as they are in the tree. */
    uint32_t *shuffled = calloc(n, sizeof(*shuffled));
    CHECK(shuffled);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = rnd_below(&rnd, i + 1);
        shuffled[i] = shuffled[k];
        shuffled[k] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        b->cache->ops->put(b->cache, get(b, shuffled[i], 0, (size_t)PAGES * PAGE));
    free(shuffled);
    for (int i = 0; i < CALLS; i++)
        b->order[i] = rnd_below(&rnd, n);
    for (int r = 0; r < rounds; r++) {
        least(&best[0], time_get(b, 0, (size_t)PAGES * PAGE));
        least(&best[1], time_get(b, PAGE + 100, 2000));
        least(&best[2], time_pair(b));
        least(&best[3], time_report(b, true));
        least(&best[4], time_report(b, false));
    }
    struct st_rcache_counters c;
    b->cache->ops->counters(b->cache, &c);
    CHECK_EQ(c.entries, n);
    printf("%8u %10.1f %10.1f %10.1f %12.1f %12.1f\n", n, best[0], best[1], best[2], best[3], best[4]);
    b->cache->ops->detach(b->cache, &b->client);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    struct tw_options o = {
        .n = 1,
        .quiet = true,
        .settings = "rcache=tree rcache_tree_max_entries=10000000 rcache_tree_max_bytes=1000g",
    };
    struct tw_world *w = tw_create(&o);
    strata_t *s;
    char err[1024] = "";
    if (rounds < 1 || tw_init(w, 0, &s, err, sizeof(err)) != STRATA_OK) {
        fprintf(stderr, "bench/rcache [ROUNDS]: %s\n", err);
        return 2;
    }
    struct bench b = {.cache = st_rcache(s), .client = {.name = "bench", .make = make, .unmake = unmake}};
    b.order = malloc(CALLS * sizeof(*b.order));
    b.found = malloc(CALLS * sizeof(struct st_rcache_entry *));
    CHECK(b.order && b.found);
    printf("rcache tree: ns per call, best of %d rounds of %d calls in random order\n", rounds, (int)CALLS);
    printf("%8s %10s %10s %10s %12s %12s\n", "entries", "get whole", "get part", "get, put", "report near",
           "report far");
    static const uint32_t sizes[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        run(&b, sizes[i], rounds);
    free(b.order);
    free(b.found);
    CHECK_OK(strata_finalize(s));
    tw_destroy(w);
    return 0;
}
