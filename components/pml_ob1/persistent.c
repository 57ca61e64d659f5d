/* Persistent requests: made once, started any number of times. */
#include "ob1.h"
#include "ob1_inl.h"
#include "recv.h"
#include "request.h"
#include "send.h"

static struct ob1_req *ob1_persistent_make(struct ob1 *pml, enum ob1_kind kind, strata_comm_t *comm,
                                           const strata_data_t *data, const void *buf, size_t len)
{
    struct ob1_req *req;

    ob1_lock(pml);
    req = ob1_req_make(pml, kind, comm, NULL, NULL, NULL);
    ob1_unlock(pml);
    if (!req)
        return NULL;
    req->head.flags = ST_REQ_PERSISTENT;
    atomic_store_explicit(&req->head.state, ST_REQ_INACTIVE, memory_order_release);
    if (data)
        req->data = *data;
    else
        ob1_data_contiguous(&req->data, buf, len);
    return req;
}

int ob1_send_init(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **out)
{
    struct ob1_req *req = ob1_persistent_make(ob1_of(comm), OB1_SEND, comm, a->data, a->buf, a->len);

    if (!req)
        return STRATA_ERR_NOMEM;
    req->rank = a->dst;
    req->tag = a->tag;
    req->mode = (uint8_t)a->mode;
    *out = &req->head;
    return STRATA_OK;
}

int ob1_recv_init(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **out)
{
    struct ob1_req *req = ob1_persistent_make(ob1_of(comm), OB1_RECV, comm, a->data, a->buf, a->len);

    if (!req)
        return STRATA_ERR_NOMEM;
    req->rank = a->src;
    req->tag = a->tag;
    *out = &req->head;
    return STRATA_OK;
}

int ob1_start(strata_request_t *request)
{
    struct ob1_req *req = (struct ob1_req *)request;
    struct ob1 *pml = ob1_of(request->comm);
    int rc;

    if (!(request->flags & ST_REQ_PERSISTENT))
        return STRATA_ERR_ARG;
    ob1_lock(pml);
    if (atomic_load_explicit(&request->state, memory_order_acquire) == ST_REQ_ACTIVE) {
        rc = STRATA_ERR_STATE;
    } else {
        atomic_store_explicit(&request->state, ST_REQ_ACTIVE, memory_order_release);
        request->end_bits = 0;
        req->matched = false;
        if (request->kind == OB1_RECV)
            rc = ob1_recv_start(pml, req);
        else if (req->mode == STRATA_BUFFERED)
            rc = ob1_send_buffered_start(pml, req);
        else
            rc = ob1_send_start(pml, req, false, NULL);
        if (rc != STRATA_OK)
            atomic_store_explicit(&request->state, ST_REQ_INACTIVE, memory_order_release);
    }
    ob1_leave(pml);
    return rc;
}
