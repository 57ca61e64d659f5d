/* Reports: memory, counters, and how a peer is reached. */
#define _GNU_SOURCE 1

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "module.h"

static void report_memory(st_mem_line_fn line, void *arg, const char *category, size_t bytes)
{
    strata_mem_line_t l = {.component = "btl_openib", .category = category, .bytes = bytes};

    line(arg, &l);
}

/* Of eager RDMA: what peers write to lies in memory that they can map, where there is such. */
static void report_rings(st_mem_line_fn line, void *arg, const struct ib_eager_memory *eager)
{
    strata_mem_line_t shared = {
        .component = "btl_openib", .category = "eager rings", .bytes = eager->shared, .shared = 1};

    line(arg, &shared);
    if (eager->own)
        report_memory(line, arg, "eager rings", eager->own);
}

void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    const struct ib_module *m = ib_module(btl);
    const struct ib_eager_memory eager = ib_eager_memory(m);
    size_t pairs = 0, shared = 0, registered = ib_methods_bytes(m) + ib_pool_bytes(&m->zcopy.heads);

    for (int i = 0; i < IB_PRIORITIES; i++) {
        const struct ib_queue *q = &m->q[i];
        *(q->srq ? &shared : &pairs) += ib_pool_bytes(&q->receives);
        registered += ib_pool_bytes(&q->sends);
        for (const struct ib_peer *p = m->peers.all; p; p = p->next)
            pairs += p->q[i].sent ? (p->q[i].mask + 1u) * sizeof *p->q[i].sent : 0;
    }
    report_memory(line, arg, "queue pairs", pairs);
    report_memory(line, arg, "shared receive queues", shared);
    report_memory(line, arg, "registered", registered);
    report_memory(line, arg, "peers", m->peers.n * sizeof(struct ib_peer) + st_rank_table_bytes(&m->peers.table));
    report_rings(line, arg, &eager);
    report_memory(line, arg, "other",
                  sizeof *m + (m->qps.map.mask + 1) * sizeof *m->qps.map.slot + st_slab_bytes(&m->rdma.slab) +
                      st_slab_bytes(&m->zcopy.slab) + eager.tables);
}

void ib_count(const struct st_counting *counting, uint64_t *value)
{
    const struct ib_module *m = ST_CONTAINER(counting, struct ib_module, counting);
    struct ib_counts count = m->count;
    uint64_t mine[IB_N_COUNTERS];

    count.grown = m->q[IB_HIGH].n_grown + m->q[IB_LOW].n_grown;
    count.connected_now = m->qps.n_peers;
    memcpy(mine, &count, sizeof mine);
    for (int i = 0; i < IB_N_COUNTERS; i++)
        value[i] += mine[i];
}

/* All counters as JSON, each with a comma behind it. */
static const char *report_counts(const struct ib_module *m, char *out, size_t size)
{
    static const char *const name[IB_N_COUNTERS] = {
        "buffered",   "sent_low",          "zcopy",       "listed",        "imm_heads", "rdma",        "put_notify",
        "again",      "credit_messages",   "grown",       "registered",    "requests",  "replies",     "repeats",
        "duplicates", "refused",           "connections", "torn_down",     "forced",    "moved",       "probes",
        "eager_rdma", "eager_rdma_around", "rings",       "rings_revoked", "ring_kept", "ring_copied", "connected"};
    uint64_t value[IB_N_COUNTERS] = {0};
    size_t n = 0;

    ib_count(&m->counting, value);
    for (int i = 0; i < IB_N_COUNTERS && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "\"%s\":%lu,", name[i], value[i]);
    return out;
}

static const char *report_state(int state)
{
    static const char *const names[] = {"idle",       "asking",    "answered", "up",   "draining", "asked to close",
                                        "consenting", "consented", "closed",   "gone", "failed"};

    return names[state];
}

/* The measured times of the device, as JSON. */
static const char *report_times(const struct st_btl_times *t, char *out, size_t size)
{
    if (t->sends == 0)
        return "null";
    snprintf(out, size,
             "{\"send_ns\":%lu,\"write_16k_ns\":%lu,\"write_64k_ns\":%lu,\"post_64k_ns\":%lu,\"copy_64k_ns\":%lu,"
             "\"registration_ns\":%lu}",
             t->sends, t->writes_16k, t->writes_64k, t->posts_64k, t->copies_64k, t->registers);
    return out;
}

/* Microseconds with a tenth, and a point in every locale: JSON knows no comma. */
static const char *report_us(uint64_t ns, char out[32])
{
    uint64_t tenths = (ns + 50) / 100;

    snprintf(out, 32, "%lu.%lu", tenths / 10, tenths % 10);
    return out;
}

char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    const struct ib_module *m = ib_module(btl);
    const struct ib_peer *p = ib_peer(ep);
    const struct ib_counts *c = &m->count;
    const struct ib_queue *high = &m->q[IB_HIGH], *low = &m->q[IB_LOW];
    char *text = NULL, part[1280], methods[32], gid[INET6_ADDRSTRLEN] = "", connect[32], slowest[32];
    uint64_t inlined = btl->messages_sent - c->buffered - c->low - c->zcopy - c->rdma - c->ring_sent;
    int n;

    inet_ntop(AF_INET6, m->dev.gid.raw, gid, sizeof gid);
    if (ep)
        n = asprintf(&text,
                     "{\"device\":\"%s\",\"state\":\"%s\",\"credits_high\":%u,\"credits_low\":%u,\"measured\":%s}",
                     m->dev.name, report_state(p->state), p->q[IB_HIGH].credits, p->q[IB_LOW].credits,
                     report_times(&m->times, part, sizeof part));
    else
        n = asprintf(
            &text,
            "{\"device\":\"%s\",\"gid\":\"%s\",\"distance\":%d,\"link\":\"%s\",\"rdma_request\":%u,\"rdma_reads\":%u,"
            "\"receives_high\":%u,\"receives_low\":%u,\"posted_high\":%u,\"posted_low\":%u,\"sent_high\":%lu,"
            "\"inlined\":%lu,%s\"connect\":\"%s\",\"asked\":%lu,\"connect_us\":%s,\"slowest_us\":%s}",
            m->dev.name, gid, m->dev.distance, m->card.ethernet ? "ethernet" : "infiniband", m->dev.max_rdma,
            m->dev.max_reads, high->target, low->target, high->posted, low->posted, inlined + c->buffered, inlined,
            report_counts(m, part, sizeof part), ib_methods_text(m->card.methods, methods, sizeof methods), c->asked,
            report_us(c->connect_ns / (c->asked ? c->asked : 1), connect), report_us(c->slowest_ns, slowest));
    return n < 0 ? NULL : text;
}
