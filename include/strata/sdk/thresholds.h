/* From which length on a message goes by which protocol over one path: derived in one place from what the transport
 * knows of that path. A client puts its user's settings in their place. */
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
    uint32_t zcopy_min;    /* shortest payload worth send_zcopy, bytes; UINT32_MAX: none is */
    size_t rdma_min;       /* shortest message by get or put, bytes; ST_BTL_RDMA_NEVER: none */
    size_t split_min;      /* shortest message of which one half is put and the other got, bytes; 0: none */
    uint32_t alone_min; /* shortest message that is announced and got when it travels alone, bytes; UINT32_MAX: none */
    size_t alone_split_min; /* as split_min, for one that travels alone */
};

/* Of a path whose module is `btl`, opened by the base, with these facts: a module's own, or those of an endpoint
 * (st_btl_facts_of). Constant time, allocates nothing. */
ST_API void st_thresholds_derive(const struct st_btl *btl, const struct st_btl_facts *facts, struct st_thresholds *out);

#ifdef __cplusplus
}
#endif
#endif
