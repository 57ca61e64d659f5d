/* Message lengths at which the protocol changes, for one path: derived in one place from the transport's facts about
 * the path. A client puts its user's settings in their place. */
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

/* Of a path whose module is `btl`, opened by the base, with these facts: a module's own, or those of an endpoint
 * (st_btl_facts_of). Constant time, allocates nothing. */
ST_API void st_thresholds_derive(const struct st_btl *btl, const struct st_btl_facts *facts, struct st_thresholds *out);

/* Times of a transport's operations by RDMA, ns, each the least of some turns. */
struct st_btl_times {
    uint64_t sends;      /* 8 bytes, until both ends have their completions */
    uint64_t writes_16k; /* an RDMA write of 16 KiB until its completion */
    uint64_t writes_64k; /* of 64 KiB */
    uint64_t posts_64k;  /* of that, in posting it: the processor of whoever asks */
    uint64_t copies_64k; /* by memcpy */
    uint64_t registers;  /* 128 KiB, made and given back */
};

/* Puts the costs that follow from `t` into *facts; those of zcopy, and latency and bandwidth, stay. A fragment costs a
 * copy at either end; a message that is announced costs two short messages more, and a registration at either end
 * unless `keeps` says that they are kept. Each cost is the length at which both are equal, within bounds: what is not
 * measured, and a buffer's size, decide there. Only where `software` moves the bytes it may pay to split. Pure. */
ST_API void st_thresholds_costs(const struct st_btl_times *t, bool keeps, bool software, struct st_btl_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
