/* Contract of the btl framework, hints: optional operations that make a fast transport faster. */
#ifndef STRATA_SDK_BTL_HINTS_H
#define STRATA_SDK_BTL_HINTS_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/list.h>
#include <strata/sdk/payload.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message that a client keeps where it arrived: in the client's memory from keep to release, or to leave. */
struct st_btl_kept {
    /* Set by the client. The transport needs the memory back: the client copies the bytes before it returns, and the
     * message is released by that. Called from any op but keep and release; calls no op of any module. */
    void (*leave)(struct st_btl_kept *kept);
    struct st_node node; /* module: of those that are kept */
    void *owner;         /* module: where the message is */
    uint32_t at;         /* module: its place there */
    uint32_t n;          /* module: its length */
};

/* Each op may be NULL; after open, the base puts an empty table in place of a missing one. */
struct st_btl_hints {
    /* The same as send, from memory that the caller does not change until op->done: the device may send directly from
     * it, header and data gathered by one request. STRATA_OK: in flight, op->done is called from progress. 1: copied,
     * done is not called. Otherwise as send. Pays from facts.zcopy_cost bytes on. NULL: the module always copies. */
    int (*send_zcopy)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                      uint32_t len, struct st_btl_op *op);

    /* Messages accepted by send, send_payload and send_zcopy between batch(btl, true) and batch(btl, false) may be
     * passed to the device together by the latter, with one doorbell. Called when several pending messages are sent at
     * once; in between only reg and dereg of the module are called. NULL: each message is passed on by itself. */
    void (*batch)(struct st_btl *btl, bool on);

    /* The same as send_payload, for a fragment of a long message that needs no order: ST_BTL_ORDERED and max_overtaking
     * do not apply to it. The module may use a separate channel, so that messages do not wait behind it; ST_BTL_FULL
     * does not refer to that channel. NULL: callers use send_payload. */
    int (*send_bulk)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                     const struct st_payload *payload);

    /* Called within deliver: keeps `len` bytes at `data`, a part of the fragment's data, until release or kept->leave.
     * The header is not kept. The peer may be able to write these bytes at any time. false: not these, or a part of the
     * fragment is kept already; the client copies them. NULL: never. */
    bool (*keep)(struct st_btl *btl, const void *data, uint32_t len, struct st_btl_kept *kept);
    /* Ends what keep began, in any order. A client releases all that it has kept before the module closes. NULL
     * without keep. */
    void (*release)(struct st_btl *btl, struct st_btl_kept *kept);
};

#ifdef __cplusplus
}
#endif
#endif
