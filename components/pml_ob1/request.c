/* Requests: storage, completion the long way, callbacks. */
#include <stdlib.h>
#include <strata/sdk/btl_rdma.h>
#include "ob1.h"
#include "ob1_inl.h"
#include "request.h"
#include "send.h"

struct ob1_req *ob1_req_make(struct ob1 *pml, enum ob1_kind kind, strata_comm_t *comm, void *storage)
{
    struct ob1_req *req = storage ? storage : st_slab_get(&pml->requests);

    if (ST_UNLIKELY(!req))
        return NULL;
    atomic_init(&req->head.state, ST_REQ_ACTIVE);
    req->head.flags = storage ? ST_REQ_FOREIGN : 0;
    req->head.kind = (uint8_t)kind;
    req->head.end_bits = 0;
    req->head.comm = comm;
    return req;
}

int ob1_recv_part(struct ob1_req *req, uint64_t offset, const void *data, uint64_t len)
{
    if (offset >= req->expect)
        return STRATA_OK;
    if (len > req->expect - offset)
        len = req->expect - offset;
    if (ST_LIKELY(req->data.kind == STRATA_CONTIGUOUS)) {
        st_copy_long((char *)req->data.u.buffer + offset, data, len);
        return STRATA_OK;
    }
    return st_data_scatter(&req->data, (size_t)offset, data, (size_t)len);
}

int ob1_req_name(struct ob1 *pml, struct ob1_req *req, int kind)
{
    if (!req->id && (req->id = st_wire_id_get(&pml->ids, (uint8_t)kind, req)) != 0)
        req->head.end_bits |= OB1_END_ID;
    return req->id ? STRATA_OK : STRATA_ERR_NOMEM;
}

void ob1_req_unname(struct ob1 *pml, struct ob1_req *req)
{
    st_wire_id_put(&pml->ids, req->id);
    req->id = 0;
    req->head.end_bits &= (uint8_t)~OB1_END_ID;
}

/* Completion when more is to be done than to set the flag. */
ST_COLD void ob1_req_end_slow(struct ob1 *pml, struct ob1_req *req)
{
    uint8_t what = req->head.end_bits;

    if (what & OB1_END_ID)
        st_wire_id_put(&pml->ids, req->id);
    if (what & OB1_END_REG) {
        req->reg_btl->rdma->dereg(req->reg_btl, req->reg);
        free(req->reg);
        req->reg = NULL;
    }
    if (what & OB1_END_LONG)
        req->peer->flow.long_sends--;
    if (what & OB1_END_BUFFERED)
        st_pml_buffer_put(pml->head.context, req->block);
    req->head.end_bits = 0;
    if (what & OB1_END_CALLBACK) {
        ob1_req_callback(pml, req, what & OB1_END_FREED);
        return;
    }
    if (what & OB1_END_FREED) {
        if (req->head.kind == OB1_SEND)
            pml->detached--;
        st_slab_put(&pml->requests, req);
        return;
    }
    atomic_store_explicit(&req->head.state, ST_REQ_COMPLETE, memory_order_release);
}

void ob1_req_try_end(struct ob1 *pml, struct ob1_req *req)
{
    uint64_t want = req->head.kind == OB1_SEND ? req->data.length : req->expect;

    if (req->tasks == 0 && (req->failed || req->done >= want))
        ob1_req_end(pml, req);
}

void ob1_req_fail(struct ob1 *pml, struct ob1_req *req, int rc)
{
    if (!req->failed) {
        req->failed = true;
        req->head.status.error = rc;
        req->head.status.length = 0;
        if (rc == STRATA_ERR_PEER)
            st_worker_news(pml->head.worker); /* why is reported before the caller sees it */
    }
    ob1_req_try_end(pml, req);
}

void ob1_request_free(strata_request_t *request)
{
    struct ob1_req *req = (struct ob1_req *)request;
    struct ob1 *pml;

    if (request->flags & ST_REQ_STATIC)
        return;
    pml = ob1_of(request->comm);
    ob1_lock(pml);
    if (atomic_load_explicit(&request->state, memory_order_acquire) == ST_REQ_ACTIVE) {
        request->flags |= ST_REQ_FREED;
        request->end_bits |= OB1_END_FREED;
        if (request->kind == OB1_SEND)
            pml->detached++;
    } else if (!(request->flags & ST_REQ_FOREIGN)) {
        st_slab_put(&pml->requests, req);
    }
    ob1_unlock(pml);
}

/* A send's bytes are done with: sent, put, fetched or not wanted. It is complete when that is all of them. */
void ob1_send_moved(struct ob1 *pml, struct ob1_req *req, uint64_t bytes)
{
    req->done += bytes;
    ob1_req_try_end(pml, req);
}

/* Calls what has completed. A callback may start operations whose completions are called by the same loop, so that the
 * stack does not grow with the number of messages. */
void ob1_run_callbacks(void *client_arg)
{
    struct ob1 *pml = client_arg;
    struct ob1_req *req;

    ob1_lock(pml);
    if (pml->in_callbacks) {
        ob1_unlock(pml);
        return;
    }
    pml->in_callbacks = true;
    while ((req = pml->ended) != NULL) {
        strata_complete_fn fn = req->head.fn;
        void *arg = req->head.arg;
        strata_status_t status = req->head.status;
        bool freed = req->head.end_bits & OB1_END_FREED, foreign = req->head.flags & ST_REQ_FOREIGN;

        pml->ended = req->next_callback;
        if (!pml->ended)
            pml->ended_last = &pml->ended;
        atomic_store_explicit(&req->head.state, ST_REQ_COMPLETE, memory_order_release);
        ob1_unlock(pml);
        fn(arg, &req->head, &status);
        ob1_lock(pml);
        if (ST_UNLIKELY(freed) && !foreign)
            st_slab_put(&pml->requests, req);
    }
    pml->in_callbacks = false;
    ob1_unlock(pml);
}
