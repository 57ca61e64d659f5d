/* Contract of the btl framework, hints: optional operations that make a fast transport faster. */
#ifndef STRATA_SDK_BTL_HINTS_H
#define STRATA_SDK_BTL_HINTS_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/payload.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each may be NULL; after open the base has put an empty table in place of a missing one. */
struct st_btl_hints {
    /* Same as send, of memory that the caller leaves as it is until op->done: the module may have the device take it
     * from there, header and data gathered by one request. STRATA_OK: in progress, op->done is called from progress. 1:
     * copied, done is not called. Otherwise as send. Pays from facts.zcopy_cost bytes on. NULL: the module always
     * copies. */
    int (*send_zcopy)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                      uint32_t len, struct st_btl_op *op);

    /* What send, send_payload and send_zcopy take between batch(btl, true) and batch(btl, false) may wait for the
     * latter, so that one doorbell does for all. Called where several messages that have waited go at once; in between
     * nothing else of the module is called but reg and dereg. NULL: each goes by itself. */
    void (*batch)(struct st_btl *btl, bool on);

    /* Same as send_payload, for a fragment of a long message that needs no order: it may overtake and be overtaken
     * without the bounds of ST_BTL_ORDERED and max_overtaking. The module may use a separate channel for it, so that
     * messages do not wait behind it; ST_BTL_FULL does not refer to that channel. NULL: send_payload does as well. */
    int (*send_bulk)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                     const struct st_payload *payload);
};

#ifdef __cplusplus
}
#endif
#endif
