/* Put with notification: writes data into memory of a peer, then delivers 28 bits to one of the peer's clients, which
 * finds the data in place. For clients that agree beforehand where data goes: landing rings, channels, eager RDMA. Not
 * ordered with anything else, not even with other notices.
 *
 * The receiver registers the memory (st_btl_rdma.reg, ST_BTL_ANY_USE, with the module of each path) and sends address
 * and key to the sender in a message. After a lost path a put with notice is not repeated: it may or may not have
 * arrived, and a late one could write to memory that has another use by then. Both sides continue in new memory with a
 * new key.
 *
 * A client waits for its puts before it leaves. All functions with the lock held. */
#ifndef STRATA_SDK_NOTIFY_H
#define STRATA_SDK_NOTIFY_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest notice. */
#define ST_NOTICE_MAX ((1u << 28) - 1)

/* A put with notice in flight; in the client's memory until it is done. */
struct st_notify {
    /* Called from progress, once: the local memory may be used again. STRATA_OK: the notice follows the data.
     * STRATA_ERR_PEER: the path or the peer is lost; STRATA_ERR_UNSUPPORTED: the path has lost the capability. */
    void (*done)(struct st_notify *n, int rc);
    struct st_btl_op op;        /* of the put. From here on the worker's */
    struct st_work work;        /* while the notice waits */
    struct st_worker *worker;   /* its worker */
    struct st_peer *peer;       /* receiver */
    struct st_btl_endpoint *ep; /* of the path */
    uint64_t n_lost;            /* number of lost paths to the peer at its start */
    uint32_t word;              /* client and notice, as they travel; once prepared, the client */
};

/* Arguments of a put with notice. */
struct st_notify_put {
    const void *local;      /* len bytes */
    struct st_btl_reg *reg; /* of local, where the path needs registration */
    uint64_t remote;        /* address in the peer */
    const uint8_t *key;     /* of the memory there: ST_BTL_KEY_MAX bytes */
    size_t len;             /* bytes; 0: the notice alone */
    enum st_am am;          /* the client, here and at the peer (struct st_client.notified) */
    uint32_t notice;        /* up to ST_NOTICE_MAX */
};

/* Starts a put over a path of a connected peer; the caller has set n->done. STRATA_OK: n->done will be called. 1: done,
 * n->done is not called. STRATA_ERR_AGAIN: nothing accepted. STRATA_ERR_UNSUPPORTED: the path cannot put.
 * STRATA_ERR_PEER. STRATA_ERR_ARG: no such client, or the notice is too large. */
ST_API int st_worker_put_notify(struct st_worker *w, struct st_peer *peer, uint8_t path,
                                const struct st_notify_put *put, struct st_notify *n);

/* The same in two steps, for an object that is used repeatedly. Prepare it once for a path and a client, and again when
 * the peer's paths have changed, while it is not in flight. STRATA_ERR_ARG. */
ST_API int st_notify_prepare(struct st_notify *n, struct st_worker *w, struct st_peer *peer, uint8_t path,
                             enum st_am am);
/* Starts a put by a prepared object; put->am is ignored. Returns as st_worker_put_notify. */
ST_API int st_notify_start(struct st_notify *n, const struct st_notify_put *put);

#ifdef __cplusplus
}
#endif
#endif
