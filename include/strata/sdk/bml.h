/* Contract of the bml framework: which BTLs reach which peer. Consulted on the first message to a peer, then
 * bypassed: clients keep the endpoint and call its BTL directly. */
#ifndef STRATA_SDK_BML_H
#define STRATA_SDK_BML_H

#include <strata/sdk/btl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most paths of one peer. */
#define ST_BML_MAX_PATHS 8u

/* One way to reach a peer. */
struct st_bml_path {
    struct st_btl_endpoint *ep; /* ep->btl is the module */
    /* Share of a striped message; the weights of a peer's paths add up to 1. 0: the path has failed. */
    float weight;
};

/* C++ has flexible array members by extension only. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
/* A peer with contact. paths[0] has the lowest latency and carries eager and control traffic; all of them carry parts
 * of long messages, by weight. A path keeps its place for good, also when it has failed. */
struct st_bml_peer {
    int rank;                   /* job rank */
    uint16_t n_paths;           /* entries of paths, at least 1 */
    struct st_bml_path paths[]; /* n_paths */
};
#pragma GCC diagnostic pop

struct st_bml;
/* Operations of a bml. */
struct st_bml_ops {
    /* Finds or makes the peer: connects the selected BTLs. STRATA_ERR_UNREACHABLE: one error line names rank, host and
     * the reason of each BTL. */
    int (*peer)(struct st_bml *bml, int rank, struct st_bml_peer **out);
    /* Returns the peer if there has been contact, else NULL. */
    struct st_bml_peer *(*lookup)(struct st_bml *bml, int rank);
    /* Returns the lowest rank >= from that lookup finds, or -1: few ranks of a large world may have contact. */
    int (*next)(struct st_bml *bml, int from);
    /* Gives the weight of a failed path to the other paths; its endpoint remains. STRATA_ERR_PEER: it was the last
     * path.
     */
    int (*path_failed)(struct st_bml *bml, struct st_bml_peer *peer, struct st_btl_endpoint *ep);
    /* Reconnects a failed path, as paths[i].ep; its weight stays 0. STRATA_ERR_AGAIN or STRATA_ERR_UNREACHABLE: not
     * yet; STRATA_ERR_PEER: never; after an error paths[i].ep is still unusable. */
    int (*path_retry)(struct st_bml *bml, struct st_bml_peer *peer, uint32_t i);
    /* The path works again: it regains its weight. */
    void (*path_works)(struct st_bml *bml, struct st_bml_peer *peer, uint32_t i);
    /* Reports the memory of peers and tables. */
    void (*mem_report)(struct st_bml *bml, st_mem_line_fn line, void *arg);
    void (*close)(struct st_bml *bml); /* disconnects all peers */
};

/* First member of a bml's own struct. */
struct st_bml {
    const struct st_bml_ops *ops; /* the component's */
    strata_t *context;            /* to which it belongs */
    struct st_btl **btls;         /* all modules open in the context, as the btl base selected them */
    size_t n_btls;                /* entries of btls */
};

/* What a bml component's `ops` points to. */
struct st_bml_component_ops {
    /* Makes the bml; `btls` stays valid and unchanged until its close. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_btl **btls, size_t n_btls,
                struct st_bml **out);
};

#ifdef __cplusplus
}
#endif
#endif
