/* What the module says about itself: memory, and how a peer is reached. */
#define _GNU_SOURCE 1
#include "report.h"
#include "peer_maps.h"
#include "sm.h"

#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/list.h>
#include <strata/sdk/thresholds.h>
#include <sys/stat.h>

void sm_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    struct sm_module *m = sm_module(btl);
    strata_mem_line_t shared = {.component = "btl_sm", .category = "shared memory", .shared = 1};
    strata_mem_line_t peers = {.component = "btl_sm", .category = "peers"};
    strata_mem_line_t other = {.component = "btl_sm", .category = "other"};
    strata_mem_line_t mapped = {.component = "btl_sm",
                                .category = "mapped peer memory",
                                .bytes = sm_maps_bytes(m),
                                .shared = 1,
                                .user = 1}; /* its owners count it */
    struct stat st;

    shared.bytes = fstat(m->seg.fd, &st) == 0 ? (size_t)st.st_blocks * 512 : m->seg.reserved;
    peers.bytes = m->n_peers * sizeof *m->peers;
    other.bytes = sizeof *m + m->n_dir * sizeof *m->senders + m->seg.geometry.n_cells * sizeof *m->cell_to +
                  m->n_rings * (sizeof *m->rings + sizeof *m->order) + st_hot_bytes(&m->hot) +
                  m->n_maps * sizeof(struct sm_map);
    line(arg, &shared);
    if (peers.bytes)
        line(arg, &peers);
    line(arg, &other);
    if (mapped.bytes)
        line(arg, &mapped);
}

const struct st_counter sm_counters[SM_N_COUNTERS] = {
    {"by_queue", "messages", STRATA_COUNT,
     "A message went by the receiver's shared queue, and not by a ring of the pair's own."},
    {"again", "times", STRATA_COUNT, "There was no room towards the receiver, and the send was tried again later."},
    {"cooperative_copies", "copies", STRATA_COUNT, "Both processors copied a long message at the same time."},
    {"one_sided_copies", "copies", STRATA_COUNT, "The kernel copied a long message, or a piece of one, at once."},
    {"demotions", "peers", STRATA_COUNT,
     "The memory of a peer could not be reached any more, and its messages are copied twice since."},
    {"sleeps", "times", STRATA_COUNT, "This rank slept until another one woke it."},
    {"wakes", "times", STRATA_COUNT, "This rank woke another one."},
};

void sm_count(const struct st_counting *counting, uint64_t *value)
{
    const struct sm_module *m = ST_CONTAINER(counting, struct sm_module, counting);
    const uint64_t mine[SM_N_COUNTERS] = {m->count.queue,     m->count.again,  m->count.coop, m->count.one_sided,
                                          m->count.demotions, m->count.sleeps, m->count.wakes};

    for (int i = 0; i < SM_N_COUNTERS; i++)
        value[i] += mine[i];
}

static const char *sm_copy_name(int mode)
{
    static const char *const names[] = {"auto", "off", "one_sided", "cooperative"};
    return names[mode];
}

static int sm_describe_module(struct sm_module *m, char **out)
{
    struct st_thresholds t;

    st_thresholds_derive(&m->btl, &m->btl.facts, &t);
    return asprintf(
        out,
        "{\"device\":\"shared memory\",\"rings\":%u,\"eager_limit\":%u,\"stream_limit\":%u,\"rdma_min\":%zu,"
        "\"reserved\":%zu,\"by_queue\":%lu,\"by_cell\":%lu,\"again\":%lu,\"cooperative_copies\":%lu,"
        "\"one_sided_copies\":%lu,\"puts_by_stores\":%lu,\"chunks_helped\":%lu,\"demotions\":%lu,\"violations\":%lu,"
        "\"entries_taken_back\":%lu,\"promoted\":%lu,\"revoked\":%lu,\"wakes\":%lu,\"sleeps\":%lu}",
        m->n_order, t.eager_limit, t.stream_limit, t.rdma_min, m->seg.reserved, m->count.queue, m->count.cell,
        m->count.again, m->count.coop, m->count.one_sided, m->count.stored, m->count.helped, m->count.demotions,
        m->count.violations, m->count.taken_back, m->count.promoted, m->count.revoked, m->count.wakes, m->count.sleeps);
}

/* Times of copies to a peer, and who has measured them. */
static int sm_describe_times(const struct sm_costs *costs, enum sm_distance d, char *out, size_t size)
{
    const struct sm_copy_times *t = &costs->times;

    if (t->kernel == 0)
        return snprintf(out, size, "null");
    return snprintf(out, size,
                    "{\"distance\":\"%s\",\"by\":\"%s\",\"call_ns\":%lu,\"kernel_16k_ns\":%lu,\"kernel_64k_ns\":%lu,"
                    "\"cache_64k_ns\":%lu,\"cold_16k_ns\":%lu,\"cold_64k_ns\":%lu,\"ring_64k_ns\":%lu,"
                    "\"fill_64k_ns\":%lu,\"copy_64k_ns\":%lu,\"small_64k_ns\":%lu}",
                    d == SM_NEAR ? "same package" : "any package",
                    costs->taken_over ? "the peer's segment" : "measured here", t->call, t->kernel_16k, t->kernel,
                    t->cache, t->cold_16k, t->cold_64k, t->ring, t->fill, t->copy, t->small);
}

char *sm_describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    struct sm_peer *p = sm_peer(ep);
    char *text = NULL, times[512];
    const struct sm_costs *costs;
    int n;

    if (!ep) {
        n = sm_describe_module(sm_module(btl), &text);
        return n < 0 ? NULL : text;
    }
    costs = &sm_module(btl)->costs[p->distance];
    sm_describe_times(costs, (enum sm_distance)p->distance, times, sizeof times);
    n = asprintf(&text,
                 "{\"device\":\"shared memory\",\"path\":\"%s\",\"attached_by\":\"%s\",\"single_copy\":\"%s\","
                 "\"single_copy_reason\":\"%s\",\"rdma_min\":%zu,\"measured\":%s}",
                 (p->gone ? p->was.ring : p->hot.word != ST_HOT_NONE) ? "ring" : "queue",
                 p->attached_by == SM_ATTACHED_PROC ? "proc" : "socket",
                 sm_copy_name(p->gone ? p->was.single_copy : p->single_copy), p->no_copy_why ? p->no_copy_why : "",
                 costs->rdma, times);
    return n < 0 ? NULL : text;
}
