/* Run-time parameters, counters, and whether there can be a device: the part of btl_openib that every job loads. */
#ifndef IB_PARAMS_H
#define IB_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/component.h>

/* Of each module: more than TCP's, less than shared memory's. */
#define IB_EXCLUSIVITY (1 << 10)

/* Priorities, and the queue pairs of a peer: control messages and eager data; larger fragments and RDMA. Paper
 * "Infiniband Scalability in Open MPI", section 5.2.2. */
enum ib_priority { IB_HIGH, IB_LOW, IB_PRIORITIES };

struct ib_params {
    const char *devices; /* "" or a list of device or device:port; ^ excludes */
    const char *receive_queues;
    double srq_k;
    int64_t srq_b;
    size_t eager_limit;  /* 0: what a buffer of high priority holds */
    size_t stream_limit; /* 0: by the device */
    size_t zcopy_min;    /* 0: never */
    size_t rdma_min;
    size_t split_min; /* 0: by the device */
    size_t rdma_pipeline;
    size_t rdma_request; /* 0: by the link layer */
    int64_t rdma_reads;  /* 0: likewise */
    int64_t send_depth[IB_PRIORITIES];
    size_t max_inline; /* 0: by the device */
    int64_t gid_index; /* -1: chosen */
    int64_t pkey_index;
    int64_t service_level;
    int64_t mtu; /* bytes; 0: the port's */
    int64_t timeout;
    int64_t retry_count;
    int64_t rnr_timer;
    int64_t connect_timeout_ms;
    int64_t connect_retry_ms;
    int64_t close_timeout_ms;
    int64_t max_connected_peers; /* 0: any number */
    const char *connect;         /* methods of connecting */
    bool connect_fallback;
    int64_t keepalive_ms; /* 0: never */
    bool near_first;
    int64_t coalesce_at;
    bool fork_support;
    int eager_rdma;        /* enum ib_eager_rdma */
    int eager_rdma_detect; /* enum ib_param_detect */
    int64_t eager_rdma_peers;
    int64_t eager_rdma_slots;
    size_t eager_rdma_slot;
    int64_t eager_rdma_span;
    int64_t eager_rdma_after;
    int64_t eager_rdma_window;
    int eager_rdma_order; /* enum ib_ring_polling */
    int64_t eager_rdma_lively;
    const char *eager_rdma_hot; /* ranks, such as "0,4-7" */
};

/* Values of eager_rdma, eager_rdma_order and eager_rdma_detect. */
enum ib_eager_rdma { IB_EAGER_OFF, IB_EAGER_ON, IB_EAGER_AUTO };
enum ib_ring_polling { IB_POLL_PRIORITISED, IB_POLL_SEQUENTIAL, IB_POLL_CIRCULAR };
enum ib_param_detect { IB_PARAM_AUTO, IB_PARAM_FLAG, IB_PARAM_SEAL, IB_PARAM_IMM };

/* Connections that may result from max_connected_peers: a rank cannot choose who asks it, so that half as many and one
 * more are accepted. 0: any number. */
static inline uint64_t ib_with_accepted(uint64_t most)
{
    return most ? most + most / 2 + 1 : 0;
}

/* Why the component is of no use on most machines. */
#define IB_NO_DEVICE "there is no InfiniBand or RoCE device on this machine (ibv_devices lists none)"

#define IB_N_PARAMS 43
extern const struct st_param ib_param_rows[IB_N_PARAMS];

/* First what ib_counters describes, in its order; `grown` and `connected_now` are filled in for the report. */
struct ib_counts {
    uint64_t buffered, low, zcopy, listed, imm_heads, rdma, notices, again, credits, grown, registered, requests,
        replies, repeats, duplicates, refused, connected, torn_down, forced, moved, probes, ring_sent, ring_around,
        rings, rings_revoked, ring_kept, ring_copied, connected_now;
    uint64_t asked, connect_ns, slowest_ns;
};

#define IB_N_COUNTERS 28
_Static_assert(offsetof(struct ib_counts, asked) == IB_N_COUNTERS * sizeof(uint64_t), "a member for each counter");
extern const struct st_counter ib_counters[IB_N_COUNTERS];

/* The kernel's folders of devices: of sysfs, and of /dev, which a container may have without sysfs. */
#define IB_CLASSES "/sys/class/infiniband_verbs"
#define IB_NODES   "/dev/infiniband"

/* False only when neither folder has an entry "uverbsN" and no libibverbs is in the process: one that is may be one
 * that has devices of its own, as softhca's. */
bool ib_may_be_present(const char *classes, const char *nodes);
bool ib_uverbs_in(const char *folder); /* whether it has an entry "uverbsN" */

#endif
