/* Statistics of a module, and the reports made of them. */
#ifndef IB_COUNTS_H
#define IB_COUNTS_H

#include <stdint.h>
#include <strata/sdk/btl.h>

struct ib_counts {
    uint64_t buffered, low, zcopy, listed, imm_heads, rdma, notices, again, credits, requests, replies, repeats,
        duplicates, refused, connected, torn_down, registered, forced, moved, probes, asked, connect_ns, slowest_ns,
        ring_sent, ring_around, rings, rings_revoked;
};

/* ---- plugin/counters.c ---- */
#define IB_N_COUNTERS 26
extern const struct st_counter ib_counters[IB_N_COUNTERS];

/* ---- report.c ---- */
void ib_count(const struct st_counting *counting, uint64_t *value);
void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif
