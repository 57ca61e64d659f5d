/* Reports: memory, counters, and how a peer is reached. */
#define _GNU_SOURCE 1
#include "counts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include "module.h"

void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    const struct ib_module *m = ib_module(btl);
    strata_mem_line_t pairs = {.component = "btl_openib", .category = "queue pairs"};
    strata_mem_line_t shared = {.component = "btl_openib", .category = "shared receive queues"};
    strata_mem_line_t registered = {.component = "btl_openib", .category = "registered"};
    strata_mem_line_t peers = {.component = "btl_openib", .category = "peers"};
    strata_mem_line_t rings = {.component = "btl_openib", .category = "eager rings", .bytes = ib_eager_bytes(m)};
    strata_mem_line_t other = {.component = "btl_openib", .category = "other"};

    for (int i = 0; i < IB_PRIORITIES; i++) {
        const struct ib_queue *q = &m->q[i];
        *(q->srq ? &shared.bytes : &pairs.bytes) += ib_pool_bytes(&q->receives);
        registered.bytes += ib_pool_bytes(&q->sends);
        for (const struct ib_peer *p = m->peers.all; p; p = p->next)
            pairs.bytes += p->q[i].sent ? (p->q[i].mask + 1u) * sizeof *p->q[i].sent : 0;
    }
    registered.bytes += ib_methods_bytes(m) + ib_pool_bytes(&m->zcopy.heads);
    peers.bytes = m->peers.n * sizeof(struct ib_peer) + st_rank_table_bytes(&m->peers.table);
    other.bytes = sizeof *m + (m->qps.map.mask + 1) * sizeof *m->qps.map.slot + st_slab_bytes(&m->rdma.slab) +
                  st_slab_bytes(&m->zcopy.slab);
    line(arg, &pairs);
    line(arg, &shared);
    line(arg, &registered);
    line(arg, &peers);
    line(arg, &rings);
    line(arg, &other);
}

void ib_count(const struct st_counting *counting, uint64_t *value)
{
    const struct ib_module *m = ST_CONTAINER(counting, struct ib_module, counting);
    const uint64_t mine[IB_N_COUNTERS] = {m->count.buffered,      m->count.low,
                                          m->count.zcopy,         m->count.listed,
                                          m->count.imm_heads,     m->count.rdma,
                                          m->count.notices,       m->count.again,
                                          m->count.credits,       m->q[IB_HIGH].n_grown + m->q[IB_LOW].n_grown,
                                          m->count.registered,    m->count.requests,
                                          m->count.replies,       m->count.repeats,
                                          m->count.duplicates,    m->count.refused,
                                          m->count.connected,     m->count.torn_down,
                                          m->count.forced,        m->count.moved,
                                          m->count.probes,        m->count.ring_sent,
                                          m->count.ring_around,   m->count.rings,
                                          m->count.rings_revoked, m->qps.n_peers};

    for (int i = 0; i < IB_N_COUNTERS; i++)
        value[i] += mine[i];
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

char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    const struct ib_module *m = ib_module(btl);
    const struct ib_peer *p = ib_peer(ep);
    char *text = NULL, times[256], methods[32], gid[INET6_ADDRSTRLEN] = "";
    uint64_t asked = m->count.asked ? m->count.asked : 1;
    uint64_t inlined =
        m->btl.messages_sent - m->count.buffered - m->count.low - m->count.zcopy - m->count.rdma - m->count.ring_sent;
    int n;

    inet_ntop(AF_INET6, m->dev.gid.raw, gid, sizeof gid);
    if (ep)
        n = asprintf(&text,
                     "{\"device\":\"%s\",\"state\":\"%s\",\"credits_high\":%u,\"credits_low\":%u,\"measured\":%s}",
                     m->dev.name, report_state(p->state), p->q[IB_HIGH].credits, p->q[IB_LOW].credits,
                     report_times(&m->times, times, sizeof times));
    else
        n = asprintf(
            &text,
            "{\"device\":\"%s\",\"gid\":\"%s\",\"distance\":%d,\"link\":\"%s\",\"rdma_request\":%u,\"rdma_reads\":%u,"
            "\"connected\":%u,"
            "\"receives_high\":"
            "%u,\"receives_low\":"
            "%u,\"posted_high\":%u,\"posted_low\":%u,"
            "\"sent_high\":%lu,\"sent_low\":%lu,\"inlined\":%lu,\"zcopy\":%lu,\"listed\":%lu,\"imm_heads\":%lu,\"put_"
            "notify\":%lu,"
            "\"again\":%lu,\"credit_"
            "messages\":%lu,"
            "\"grown\":%lu,\"requests\":%lu,\"replies\":%lu,\"repeats\":%lu,\"duplicates\":%lu,\"refused\":%lu,"
            "\"torn_down\":%lu,\"forced\":%lu,\"moved\":%lu,\"probes\":%lu,\"eager_rdma\":%lu,\"eager_rdma_around\":%"
            "lu,\"rings\":%lu,\"rings_revoked\":%lu,\"connect\":\"%s\",\"connections\":%lu,"
            "\"asked\":%lu,"
            "\"connect_us\":%.1f,\"slowest_us\":%.1f}",
            m->dev.name, gid, m->dev.distance, m->card.ethernet ? "ethernet" : "infiniband", m->dev.max_rdma,
            m->dev.max_reads, m->qps.n_peers, m->q[IB_HIGH].target, m->q[IB_LOW].target, m->q[IB_HIGH].posted,
            m->q[IB_LOW].posted, inlined + m->count.buffered, m->count.low, inlined, m->count.zcopy, m->count.listed,
            m->count.imm_heads, m->count.notices, m->count.again, m->count.credits,
            m->q[IB_HIGH].n_grown + m->q[IB_LOW].n_grown, m->count.requests, m->count.replies, m->count.repeats,
            m->count.duplicates, m->count.refused, m->count.torn_down, m->count.forced, m->count.moved, m->count.probes,
            m->count.ring_sent, m->count.ring_around, m->count.rings, m->count.rings_revoked,
            ib_methods_text(m->card.methods, methods, sizeof methods), m->count.connected, m->count.asked,
            (double)m->count.connect_ns / 1e3 / (double)asked, (double)m->count.slowest_ns / 1e3);
    return n < 0 ? NULL : text;
}
