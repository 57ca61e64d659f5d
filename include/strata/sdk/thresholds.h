/* Message lengths at which the protocol changes, for one path: derived in one place from the transport's facts about
 * the path. Settings of the user replace them in the client. */
#ifndef STRATA_SDK_THRESHOLDS_H
#define STRATA_SDK_THRESHOLDS_H

#include <strata/sdk/btl_rdma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The thresholds of one path. */
struct st_thresholds {
    uint32_t eager_limit;  /* longest message sent before the receiver has matched, bytes */
    uint32_t stream_limit; /* longest one sent as fragments that do not wait for the receiver, bytes; >= eager_limit */
    uint32_t coalesce;     /* longest message that goes together with others in a burst, bytes */
    uint32_t zcopy_min;    /* shortest payload worth send_zcopy, bytes; UINT32_MAX: none is */
    size_t rdma_min;       /* shortest message by get or put, bytes; ST_BTL_RDMA_NEVER: none */
    size_t split_min;      /* shortest message of which one half is put and the other got, bytes; 0: none */
    uint32_t alone_min; /* shortest message that is announced and got when it travels alone, bytes; UINT32_MAX: none */
    size_t alone_split_min; /* as split_min, for one that travels alone */
};

/* Derives the thresholds of a path whose module is `btl`, opened by the base, from the facts of the module or of an
 * endpoint (st_btl_facts_of). Constant time, allocates nothing. */
ST_API void st_thresholds_derive(const struct st_btl *btl, const struct st_btl_facts *facts, struct st_thresholds *out);

/* Times of a transport's operations by RDMA, ns, each the minimum of some runs. */
struct st_btl_times {
    uint64_t sends;      /* 8 bytes, until both ends have their completions */
    uint64_t writes_16k; /* an RDMA write of 16 KiB until its completion */
    uint64_t writes_64k; /* of 64 KiB */
    uint64_t posts_64k;  /* part of writes_64k spent in posting, on the processor of the caller */
    uint64_t copies_64k; /* by memcpy */
    uint64_t registers;  /* registration and deregistration of 128 KiB */
};

/* Computes the costs in *facts from `t`, except those of zcopy, latency and bandwidth. A fragment costs a copy at each
 * end; an announced message costs two short messages more, and a registration at each end unless `keeps` is true. Each
 * cost is the length at which both are equal, within bounds given by unmeasured costs and the size of a buffer. A split
 * can only pay if `software` moves the bytes. Pure function. */
ST_API void st_thresholds_costs(const struct st_btl_times *t, bool keeps, bool software, struct st_btl_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
