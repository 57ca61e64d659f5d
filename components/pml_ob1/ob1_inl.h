/* Hot helpers: lock, copy, completion, polling, look-up. */
#ifndef OB1_INL_H
#define OB1_INL_H

#include <strata/sdk/copy.h>
#include "comm.h"
#include "ob1.h"
#include "request.h"

ST_INLINE void ob1_lock(struct ob1 *pml)
{
    if (ST_UNLIKELY(pml->threaded))
        st_worker_lock(pml->head.worker);
}

ST_INLINE void ob1_unlock(struct ob1 *pml)
{
    if (ST_UNLIKELY(pml->threaded))
        st_worker_unlock(pml->head.worker);
}

/* Ends an op: gives the lock back, then calls what has completed. */
ST_INLINE void ob1_leave(struct ob1 *pml)
{
    bool more = st_worker_has_news(pml->head.worker);

    ob1_unlock(pml);
    if (ST_UNLIKELY(more))
        st_worker_outside(pml->head.worker);
}

/* Queues the callback of a complete request: it is called when the lock has been given back (ob1_leave). */
ST_INLINE void ob1_req_callback(struct ob1 *pml, struct ob1_req *req, uint8_t freed)
{
    /* The flag is set when the callback is called: until then the storage is ours. */
    req->head.end_bits = (uint8_t)(freed | OB1_END_QUEUED);
    req->next_callback = NULL;
    *pml->ended_last = req;
    pml->ended_last = &req->next_callback;
    st_worker_news(pml->head.worker);
}

/* A request is complete: status is filled in. Release pairs with the acquire of whoever waits. */
ST_INLINE void ob1_req_end(struct ob1 *pml, struct ob1_req *req)
{
    if (ST_LIKELY(req->head.end_bits == OB1_END_CALLBACK))
        ob1_req_callback(pml, req, 0);
    else if (ST_UNLIKELY(req->head.end_bits != 0))
        ob1_req_end_slow(pml, req);
    else
        atomic_store_explicit(&req->head.state, ST_REQ_COMPLETE, memory_order_release);
}

ST_INLINE bool ob1_req_done(const struct ob1_req *req)
{
    return atomic_load_explicit(&((struct ob1_req *)(uintptr_t)req)->head.state, memory_order_acquire) ==
           ST_REQ_COMPLETE;
}

ST_INLINE void ob1_status(struct ob1_req *req, int src, int tag, int error, size_t length, size_t sent)
{
    req->head.status.source = src;
    req->head.status.tag = tag;
    req->head.status.error = error;
    req->head.status.length = length;
    req->head.status.sent = sent;
}

/* Whether a message of that length that nobody waits for had better wait for others to go along with (coalesce.c).
 * `ep`: the peer's first way; a lane refers to its path. */
ST_INLINE bool ob1_keeps_back(const struct ob1_peer *peer, const struct st_btl_endpoint *ep, size_t len)
{
    return ST_UNLIKELY((ep->caps & ST_BTL_CROWDED) != 0) && len <= peer->coalesce &&
           (st_peer_path(peer->shared, 0)->caps & ST_BTL_CROWDED) != 0;
}

ST_INLINE struct ob1 *ob1_of(const strata_comm_t *comm)
{
    return (struct ob1 *)comm->pml;
}

ST_INLINE void ob1_data_contiguous(strata_data_t *data, const void *buf, size_t len)
{
    data->kind = STRATA_CONTIGUOUS;
    data->length = len;
    data->u.buffer = (void *)(uintptr_t)buf;
}

/* A malformed fragment of a peer was dropped. */
static inline void ob1_protocol_error(struct ob1 *pml, const struct st_frag *frag, const char *what)
{
    st_worker_protocol_error(pml->head.worker, "pml_ob1", frag, what, &pml->n_protocol_errors);
}

#endif
