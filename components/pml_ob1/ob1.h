/* The state of the PML in one context. */
#ifndef OB1_H
#define OB1_H

#include <strata/sdk/block_cache.h>
#include <strata/sdk/idle.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/slab.h>
#include <strata/sdk/wire_ids.h>
#include "choose.h"
#include "control.h"
#include "peer.h"
#include "want.h"

struct ob1_comm;
struct ob1_msg;
struct ob1_req;
struct ob1_revoked;
struct ob1_table;
struct ob1_tune;

struct ob1_config {
    size_t eager_limit;
    int64_t stream_limit;
    size_t rdma_min;
    size_t split_min;
    size_t alone_min;
    size_t stripe_min;
    size_t piece;
    int64_t depth;
    int64_t coalesce;
    size_t unexpected_max;
    size_t unexpected_spare;
    int64_t spin;
    struct st_worker_paths paths;
    int rndv; /* enum ob1_rndv */
};

#define OB1_COMM_CACHE 16u

/* Why progress calls ob1_attend: ranges that were got wait to be reported. */
#define OB1_WORK (ST_ATTEND_WORK << ST_AM_PML)

struct ob1 {
    struct st_pml head;
    bool threaded;
    bool in_callbacks;
    bool tells;               /* senders of announced messages hear what those found */
    struct st_node throttled; /* peers that were asked to announce messages */
    struct st_node kept;      /* messages whose payload stays in memory of a transport: ob1_kept.node */
    struct ob1_req *ended;    /* callbacks to call */
    struct ob1_req **ended_last;
    struct ob1_comm *by_id[OB1_COMM_CACHE];
    struct ob1_want want;

    struct ob1_comm **comms; /* table by id */
    uint32_t comms_mask, n_comms;
    size_t n_peers;
    struct st_slab requests, messages, tasks, pieces, controls, streams, cpeers;
    struct st_wire_ids ids;
    struct strata_request done; /* the static complete request */
    struct ob1_cpeer nobody;    /* what comm->to and from point to at first */
    struct ob1_config config;
    int rank, size;
    struct ob1_msg *early, **early_last; /* for contexts that do not exist yet, in order of arrival */
    struct ob1_revoked *revoked;         /* contexts that were freed: revoke.h */
    uint32_t n_revoked;
    uint64_t n_early, n_dropped, n_protocol_errors, n_coalesced;
    size_t unexpected_bytes;
    struct st_block_cache payloads; /* of unexpected messages, and memory that stays for the next ones */
    struct ob1_fins fins;
    struct ob1_tune *tunes; /* by module */
    struct ob1_table *tables;
    uint32_t n_tables;
    uint64_t detached; /* sends that nobody waits for: buffered or freed */
    struct st_counting counting;
    uint64_t by_protocol[OB1_P_COUNT];
    uint64_t n_sent, n_received; /* messages of members of contexts that have been freed */
};

#endif
