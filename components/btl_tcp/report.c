/* What the module says of itself: memory, counters, how a peer is reached. */
#define _GNU_SOURCE 1
#include <malloc.h>
#include <stdio.h>
#include <strata/sdk/list.h>
#include <strata/sdk/process_memory.h>
#include <strata/sdk/socket.h>
#include <string.h>
#include <sys/socket.h>
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

const struct st_counter tcp_counters[TCP_N_COUNTERS] = {
    {"blocked", "times", STRATA_COUNT, "A socket had no room, and the send was tried again later."},
    {"refused", "connections", STRATA_COUNT,
     "A connection was closed since the other side did not prove to belong to the job, or sent no frames of it."},
    {"duplicates", "connections", STRATA_COUNT, "A connection was closed since the pair had another one."},
    {"dials", "connections", STRATA_COUNT, "An address of a peer was dialled."},
    {"broken", "connections", STRATA_COUNT, "A connection that was in use has broken."},
    {"puts", "operations", STRATA_COUNT, "A put, with or without a notice, was taken."},
    {"gets", "operations", STRATA_COUNT, "A get was taken."},
    {"bulk", "connections", STRATA_COUNT, "A second connection to a peer was made, for puts and gets."},
    {"zerocopy", "calls", STRATA_COUNT, "A payload, or a part of one, was sent with MSG_ZEROCOPY."},
    {"copied", "calls", STRATA_COUNT, "The kernel copied it all the same."},
};

void tcp_count(const struct st_counting *counting, uint64_t *value)
{
    const struct tcp_module *m = ST_CONTAINER(counting, struct tcp_module, counting);

    value[0] += m->count.blocked;
    value[1] += m->count.refused;
    value[2] += m->count.duplicates;
    value[3] += m->count.dials;
    value[4] += m->count.broken;
    value[5] += m->count.puts;
    value[6] += m->count.gets;
    value[7] += m->count.bulk;
    value[8] += m->count.zerocopy;
    value[9] += m->count.copied;
}

void tcp_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    struct tcp_module *m = tcp_of(btl);
    strata_mem_line_t peers = {.component = "btl_tcp",
                               .category = "peers",
                               .bytes = st_rank_table_bytes(&m->peers) + m->n_peers * sizeof(struct tcp_peer) +
                                        m->n_conns * sizeof(struct tcp_conn) + m->n_rdma * sizeof(struct tcp_rdma) +
                                        st_slab_bytes(&m->jobs)};
    strata_mem_line_t rings = {.component = "btl_tcp",
                               .category = "eager rings",
                               .bytes = st_resident_bytes(m->spare, m->spare ? m->rx_size : 0)};
    strata_mem_line_t other = {
        .component = "btl_tcp", .category = "other", .bytes = sizeof *m + m->n_regs * sizeof(struct tcp_registered)};

    for (struct st_node *n = m->dialling.next; n != &m->dialling; n = n->next)
        peers.bytes += sizeof(struct tcp_dial);
    for (struct st_node *n = m->waiting.next; n != &m->waiting; n = n->next)
        peers.bytes += sizeof(struct tcp_dial);
    for (struct st_node *n = m->conns.next; n != &m->conns; n = n->next) {
        const struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        rings.bytes +=
            st_resident_bytes(c->rx, c->rx ? m->rx_size : 0) + st_resident_bytes(c->out, malloc_usable_size(c->out));
    }
    line(arg, &peers);
    line(arg, &rings);
    line(arg, &other);
}

char *tcp_describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    const struct tcp_peer *p = (const struct tcp_peer *)ep;
    static const uint8_t none[16];
    char address[TCP_TEXT], *text = NULL;
    bool known = p && memcmp(p->address, none, sizeof none) != 0;

    (void)btl;
    if (asprintf(&text, "{\"device\": \"TCP%s%s\", \"single_copy\": \"none\"}", known ? " to " : "",
                 known ? tcp_address_text(p->address, address) : "") < 0)
        return NULL;
    return text;
}
