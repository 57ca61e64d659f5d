/* What a job will need: refused beforehand where the machine does not hold it. */
#define _GNU_SOURCE 1
#include "memscale.h"
#include "tools/shared/spare_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_BYTES 70e3 /* both ends of a ring of eager RDMA */

static double mean(const json_t *one, const char *name)
{
    return json_number_value(json_object_get(json_object_get(one, "mean"), name));
}

/* Bytes of one rank in a measurement: its own pages and tables, and its part of the device's. */
static double rank_bytes(const json_t *one)
{
    return mean(one, "private") + mean(one, "page_tables") + mean(one, "device_share");
}

/* Bytes of all ranks together in pages that they share: libraries, and segments such as rings of eager RDMA. */
static double shared_bytes(const json_t *one)
{
    const double each = mean(one, "proportional") - mean(one, "private");

    return each > 0 ? each * json_number_value(json_object_get(one, "ranks")) : 0;
}

/* What the configuration sets, or "". */
static const char *setting(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->set[i].name, name) == 0)
            return c->set[i].value;
    return "";
}

/* Rings of eager RDMA that a process has at most, where every peer gets one from its first message on. */
static double rings(const struct config *c)
{
    const char *peers = setting(c, "btl_openib_eager_rdma_peers");

    if (strcmp(setting(c, "btl_openib_eager_rdma"), "on") != 0 || !*setting(c, "btl_openib_eager_rdma_after"))
        return 0;
    return *peers ? strtod(peers, NULL) : 16;
}

/* Connections that a process keeps, of those that it has made. */
static double connections(const struct config *c, double made)
{
    const double own = strtod(setting(c, "btl_openib_max_connected_peers"), NULL), most = 1.5 * own + 1;

    return own > 0 && most < made ? most : made;
}

/* Bytes of a process, and of a connected peer: with a queue of its own; with shared ones on softhca, and on an adapter;
 * without an adapter. What docs/measured/memscale.md has, and some more. */
static const struct sizes {
    double process, peer_own, peer_softhca, peer_verbs, peer;
} sizes_of[N_LIBRARIES] = {
    [LIB_STRATA] = {3e6, 900e3, 14e3, 40e3, 8e3},
    [LIB_OPENMPI] = {29e6, 5.4e6, 16e3, 300e3, 14e3},
    [LIB_MPICH] = {85e6, 52e3, 52e3, 270e3, 52e3},
};

static double peer_bytes(const struct config *c)
{
    const struct sizes *s = &sizes_of[c->transport->library];

    if (setting(c, "btl_openib_receive_queues")[0] == 'P')
        return s->peer_own;
    if (c->transport->softhca)
        return s->peer_softhca;
    return strstr(c->transport->btl, "openib") || strstr(c->transport->btl, "verbs") ? s->peer_verbs : s->peer;
}

/* Bytes of a rank before anything is measured. softhca's part of a process, and of each rank that was ever connected,
 * whose segment it maps, comes on top. */
static double guess(const struct config *c, enum pattern pattern, int n)
{
    const double peers = pattern == HELLO ? 0 : pattern == PAIRWISE ? 1 : n - 1, connected = connections(c, peers);
    const double with_ring = connected < rings(c) ? connected : rings(c);

    return sizes_of[c->transport->library].process + (c->transport->softhca ? 1e6 + peers * 22e3 : 0) +
           connected * peer_bytes(c) + with_ring * RING_BYTES;
}

/* A line through the larger measurement and the smaller one; never less than the larger. */
static double line_at(const double x[2], const double y[2], double at)
{
    const double slope = (y[0] - y[1]) / (x[0] - x[1]);

    return y[0] + (slope > 0 ? slope * (at - x[0]) : 0);
}

/* Segments of all ranks grow by the number of ranks, and by the number of pairs where all speak to all. */
static double shared_at(enum pattern pattern, const double x[2], const double shared[2], double at)
{
    const double pairs[2] = {x[0] * x[0], x[1] * x[1]};

    return pattern == ALL_TO_ALL ? line_at(pairs, shared, at * at) : line_at(x, shared, at);
}

/* By the two largest measurements of fewer ranks; one measurement gives no slope. */
double estimate_bytes(const json_t *all, const struct config *c, enum pattern pattern, int n)
{
    double x[2] = {0, 0}, each[2] = {0, 0}, shared[2] = {0, 0};
    const json_t *one;
    size_t i;

    json_array_foreach(all, i, one)
    {
        const double ranks = json_number_value(json_object_get(one, "ranks"));
        if (ranks >= n || ranks == x[0] || ranks <= x[1] || !result_is(one, c, pattern))
            continue;
        if (ranks > x[0]) {
            x[1] = x[0];
            each[1] = each[0];
            shared[1] = shared[0];
        }
        const int k = ranks > x[0] ? 0 : 1;
        x[k] = ranks;
        each[k] = rank_bytes(one);
        shared[k] = shared_bytes(one);
    }
    if (x[1] == 0)
        return guess(c, pattern, n) * n;
    return line_at(x, each, n) * n + shared_at(pattern, x, shared, n);
}

double estimate_room(void)
{
    return 0.9 * (double)spare_memory("");
}

int estimate_most(const json_t *all, const struct config *c, enum pattern pattern)
{
    const int limit = c->transport->softhca ? SOFTHCA_RANKS : MOST_RANKS;
    const double room = estimate_room();
    int low = 0, high = limit + 1;

    while (low + 1 < high) {
        const int middle = low + (high - low) / 2;
        if (estimate_bytes(all, c, pattern, middle) <= room)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void estimates_print(const struct plan *p, const json_t *all)
{
    printf("%-16s %-9s %10s  %s\n", "", "", "ranks", "limit");
    for (size_t i = 0; i < p->n_configs; i++)
        for (size_t k = 0; k < p->n_patterns; k++) {
            const struct config *c = &p->configs[i];
            const int most = estimate_most(all, c, p->patterns[k]);
            printf("%-16s %-9s %10d  ", c->name, pattern_names[p->patterns[k]], most);
            if (c->transport->softhca && most == SOFTHCA_RANKS)
                printf("processes of softhca\n");
            else if (most == MOST_RANKS)
                printf("largest number that --ranks takes\n");
            else
                printf("memory: %.1f of %.1f GiB\n", estimate_bytes(all, c, p->patterns[k], most) / (1 << 30),
                       estimate_room() / (1 << 30));
        }
}
