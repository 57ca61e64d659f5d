/* Host overhead and collectives, for bench/eager_rdma.sh; strata-perf measures the rest of its jobs. Rank 0 prints
 * "TEST BYTES US", medians.
 * - overhead ROUNDS BYTES...: LogP's o of two ranks, the mean of what a send takes and of what a receive takes whose
 * message is there, each with nothing else to do
 * - collectives ROUNDS BYTES...: barrier, allreduce and broadcast of all ranks, the time until all have finished */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/coll.h>
#include <strata/strata.h>
#include <time.h>
#include "median.h"

enum { TAG = 3, WARM_UP = 200, MESSAGES = 200, PAUSE_US = 20, BATCH = 20, MOST_SAMPLES = 100000 };

static strata_t *s;
static strata_comm_t *world;
static int rank, n;
static double sample[2][MOST_SAMPLES];

static void must(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "eager_rdma: rank %d: %s: status %d\n", rank, what, rc);
    exit(1);
}

static double microseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The time that reading the clock takes. */
static double clock_us(void)
{
    static double v[1001];

    for (int i = 0; i < 1001; i++) {
        v[i] = microseconds();
        v[i] = microseconds() - v[i];
    }
    return median(v, 1001);
}

/* ---- host overhead ---- */

static void pause_for(double us)
{
    double until = microseconds() + us;

    while (microseconds() < until)
        ;
}

static void overhead(int rounds, size_t bytes)
{
    char *b = calloc(1, bytes + 1);
    double clock = clock_us(), t;
    int count = rounds * MESSAGES;

    if (!b || count > MOST_SAMPLES)
        must(STRATA_ERR_NOMEM, "buffers");
    for (int i = -WARM_UP; i < count; i++) {
        if (rank == 1) {
            must(strata_recv(world, b, bytes, 0, TAG, STRATA_STATUS_IGNORE), "recv");
            must(strata_send(world, b, bytes, 0, TAG), "send");
            continue;
        }
        t = microseconds();
        must(strata_send(world, b, bytes, 1, TAG), "send");
        if (i >= 0)
            sample[0][i] = microseconds() - t - clock;
        pause_for(PAUSE_US); /* the answer is there */
        t = microseconds();
        must(strata_recv(world, b, bytes, 1, TAG, STRATA_STATUS_IGNORE), "recv");
        if (i >= 0)
            sample[1][i] = microseconds() - t - clock;
    }
    if (rank == 0) {
        double send = median(sample[0], count), recv = median(sample[1], count);
        printf("overhead_send %zu %.4f\noverhead_recv %zu %.4f\noverhead %zu %.4f\n", bytes, send, bytes, recv, bytes,
               (send + recv) / 2);
    }
    free(b);
}

/* ---- collectives ---- */

static void sum(void *arg, const void *in, void *inout, size_t count)
{
    const double *a = in;
    double *b = inout;

    (void)arg;
    for (size_t i = 0; i < count; i++)
        b[i] += a[i];
}

static void collective(strata_coll_kind_t kind, const char *name, int rounds, size_t bytes)
{
    double *in = calloc(bytes / 8 + 1, 8), *out = calloc(bytes / 8 + 1, 8);
    strata_coll_t c = STRATA_COLL_INIT(kind), barrier = STRATA_COLL_INIT(STRATA_BARRIER);

    if (!in || !out || rounds > MOST_SAMPLES)
        must(STRATA_ERR_NOMEM, "buffers");
    c.send = in;
    c.recv = out;
    c.count = bytes / 8;
    c.element = 8;
    c.reduce = sum;
    for (int r = -2; r < rounds; r++) {
        double t;
        must(strata_coll(world, &barrier), "barrier");
        t = microseconds();
        for (int i = 0; i < BATCH; i++)
            must(strata_coll(world, &c), name);
        /* Broadcasts end at the root before they are at the others. */
        must(strata_coll(world, &barrier), "barrier");
        if (r >= 0)
            sample[0][r] = (microseconds() - t) / (BATCH + (kind == STRATA_BARRIER));
    }
    if (rank == 0)
        printf("%s_%d %zu %.4f\n", name, n, bytes, median(sample[0], rounds));
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    const char *test = argc > 1 ? argv[1] : "";
    int rounds = argc > 2 ? atoi(argv[2]) : 0, known = !strcmp(test, "overhead") || !strcmp(test, "collectives");

    if (!known || rounds < 1 || argc < 4) {
        fprintf(stderr, "usage: eager_rdma overhead|collectives ROUNDS BYTES...\n");
        return 2;
    }
    must(strata_init(NULL, &s), "init");
    world = strata_world(s);
    rank = strata_rank(s);
    n = strata_size(s);
    if (!strcmp(test, "collectives"))
        collective(STRATA_BARRIER, "barrier", rounds, 0);
    for (int i = 3; i < argc; i++) {
        size_t bytes = strtoul(argv[i], NULL, 10);
        if (!strcmp(test, "overhead")) {
            overhead(rounds, bytes);
            continue;
        }
        collective(STRATA_ALLREDUCE, "allreduce", rounds, bytes);
        collective(STRATA_BCAST, "bcast", rounds, bytes);
    }
    must(strata_finalize(s), "finalize");
    return 0;
}
