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

/* The use of registered memory: as a source only (peers get from it, this process puts it), or any. */
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
    uint8_t key[ST_BTL_KEY_MAX]; /* to be sent to the peer unchanged */
};

/* Each op states whether it may be NULL. After open, the base puts defaults that do nothing in place of missing reg and
 * dereg, and of a missing table, so that callers need no check there. */
struct st_btl_rdma {
    /* Copies len bytes from the peer's memory at `remote` (an address in the peer) to `local`. Keys and regs are
     * ignored without ST_BTL_NEEDS_REG. STRATA_OK: in flight, op->done is called from progress. 1: already finished,
     * done is not called. STRATA_ERR_AGAIN: nothing accepted. STRATA_ERR_UNSUPPORTED, by return or by done: this
     * endpoint has lost the capability, also in ep->caps; use another protocol. NULL without the capability. `done` of
     * an operation in flight is called exactly once, with STRATA_ERR_PEER if the endpoint has been disconnected since;
     * only close drops it. */
    int (*get)(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
               struct st_btl_reg *reg, struct st_btl_op *op);
    /* The other direction; see get. NULL without ST_BTL_PUT. */
    int (*put)(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
               struct st_btl_reg *reg, struct st_btl_op *op);
    /* A put, then a notice: at the peer the module delivers `word`, in this process's byte order, as a header of 4
     * bytes to am[ST_AM_NOTICE], once, and not before all of the data can be read there. Not ordered with anything
     * else. len > 0. Return values as put, except: STRATA_ERR_AGAIN: no notice will arrive, although bytes may have
     * been written. op->done(STRATA_OK): the local memory may be used again, the notice is in flight.
     * STRATA_ERR_UNSUPPORTED by return: not for this memory or not now, nothing accepted; the worker then uses a put
     * and a message. STRATA_ERR_PEER by done: the notice may or may not have arrived. NULL: always a put and a message.
     */
    int (*put_notify)(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                      size_t len, struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op);
    /* Maps `len` bytes of registered memory of the peer, at `remote`, for loads and stores of both processes. The
     * mapping lasts until st_shared_unmap, also if the endpoint fails. STRATA_ERR_UNSUPPORTED: not for this memory;
     * STRATA_ERR_NOMEM: not now; STRATA_ERR_PEER: the peer is lost. NULL: never. */
    int (*map)(struct st_btl_endpoint *ep, uint64_t remote, const uint8_t *remote_key, size_t len,
               struct st_shared_mapping *out);
    /* Registers `len` bytes at `base` for `use`; memory that this process cannot write is registered only as a source.
     * May be NULL without ST_BTL_NEEDS_REG: get and put then need no registration, but put_notify may be cheaper with a
     * key. Counted: each reg is undone by one dereg. STRATA_ERR_AGAIN: try again later. STRATA_ERR_NOMEM,
     * STRATA_ERR_UNSUPPORTED: not for this memory, or not now: the caller uses another protocol. Any other error
     * (STRATA_ERR_ARG: nothing is mapped there) fails the message. */
    int (*reg)(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
    /* Undoes one reg. May be NULL without ST_BTL_NEEDS_REG. */
    void (*dereg)(struct st_btl *btl, struct st_btl_reg *reg);
};

#ifdef __cplusplus
}
#endif
#endif
