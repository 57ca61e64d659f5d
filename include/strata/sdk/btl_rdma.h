/* Contract of the btl framework, RDMA: a module that can move bytes between the memory of two processes without the
 * peer's help says so by ST_BTL_GET and ST_BTL_PUT and sets btl->rdma in open. */
#ifndef STRATA_SDK_BTL_RDMA_H
#define STRATA_SDK_BTL_RDMA_H

#include <strata/sdk/btl.h>
#include <strata/sdk/shared_map.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest key that names registered memory to a peer, bytes. */
#define ST_BTL_KEY_MAX 32u

/* What memory is registered for: that peers get from it, or that this process puts it; or anything. */
enum st_btl_use { ST_BTL_SOURCE, ST_BTL_ANY_USE };

/* Completion of a put, a get, or a send that was not copied at once. Lives in the caller's memory. */
struct st_btl_op {
    /* rc: STRATA_OK, STRATA_ERR_PEER or STRATA_ERR_UNSUPPORTED. May free op. */
    void (*done)(struct st_btl_op *op, int rc);
};

/* An rdma_cost that excludes RDMA for every message. */
#define ST_BTL_RDMA_NEVER ((size_t)1 << 40)

/* Registered memory: made by reg, named to a peer by its key. */
struct st_btl_reg {
    void *handle;                /* the module's own */
    uint8_t key[ST_BTL_KEY_MAX]; /* to be sent to the peer as it is */
};

/* What may be NULL is said at each op; after open the base has put defaults in place of reg and dereg, which do
 * nothing, and of a missing table, so that callers need no check there. */
struct st_btl_rdma {
    /* RDMA between local and the peer's memory at remote (an address in the peer). Keys and regs are ignored
     * without ST_BTL_NEEDS_REG. STRATA_OK: under way, op->done is called from progress. 1: already finished, done is
     * not called. STRATA_ERR_AGAIN: nothing taken. STRATA_ERR_UNSUPPORTED, by return or by done: this endpoint lost
     * the capability (ep->caps says so too); use another protocol. NULL without the capability.
     * `done` of an operation under way is called exactly once, with STRATA_ERR_PEER if the endpoint has been
     * disconnected since; only close drops it. */
    int (*get)(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
               struct st_btl_reg *reg, struct st_btl_op *op);
    /* The other direction; see get. NULL without ST_BTL_PUT. */
    int (*put)(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
               struct st_btl_reg *reg, struct st_btl_op *op);
    /* A put, then a notice: at the peer the module hands `word`, in this process's byte order, as a header of 4 bytes
     * to am[ST_AM_NOTICE], once, and not before all of the data can be read there. Not ordered with anything else. len
     * > 0. As put, with: STRATA_ERR_AGAIN: no notice will come, though bytes may have been written;
     * op->done(STRATA_OK): the local memory may be used again, the notice is on its way. STRATA_ERR_UNSUPPORTED by
     * return: not this memory or not now, nothing taken; the worker then puts and sends a message. STRATA_ERR_PEER by
     * done: whether it has arrived is unknown. NULL: always a put and a message. */
    int (*put_notify)(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                      size_t len, struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op);
    /* Maps `len` bytes of registered memory of the peer, at `remote`, for loads and stores of both processes. Lasts
     * until st_shared_unmap, whatever becomes of the endpoint. STRATA_ERR_UNSUPPORTED: not this memory;
     * STRATA_ERR_NOMEM: not now; STRATA_ERR_PEER: the peer is lost. NULL: never. */
    int (*map)(struct st_btl_endpoint *ep, uint64_t remote, const uint8_t *remote_key, size_t len,
               struct st_shared_mapping *out);
    /* For `use`, which says whether the memory may be such as cannot be written. May be NULL without
     * ST_BTL_NEEDS_REG: get and put need no registration then; put_notify may be cheaper with the key of one.
     * Counted: each reg is undone by one dereg. STRATA_ERR_AGAIN: try later; STRATA_ERR_NOMEM, STRATA_ERR_UNSUPPORTED:
     * not this memory, or not now: it goes by other ways; anything else (STRATA_ERR_ARG: there is no memory) fails the
     * message. */
    int (*reg)(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
    /* Undoes one reg. May be NULL without ST_BTL_NEEDS_REG. */
    void (*dereg)(struct st_btl *btl, struct st_btl_reg *reg);
};

#ifdef __cplusplus
}
#endif
#endif
