/* Persistent requests: made once, started any number of times. */
#include "ob1.h"
#include "ob1_inl.h"
#include "recv.h"
#include "request.h"
#include "send.h"

/* rank: the destination, or the wanted source. */
static int ob1_persistent_make(strata_comm_t *comm, enum ob1_kind kind, const strata_data_t *data, const void *buf,
                               size_t len, int rank, int tag, strata_mode_t mode, strata_request_t **out)
{
    struct ob1 *pml = ob1_of(comm);
    struct ob1_req *req;

    ob1_lock(pml);
    req = ob1_req_make(pml, kind, comm, NULL);
    ob1_unlock(pml);
    if (!req)
        return STRATA_ERR_NOMEM;
    req->head.flags = ST_REQ_PERSISTENT;
    atomic_store_explicit(&req->head.state, ST_REQ_INACTIVE, memory_order_release);
    if (data)
        req->data = *data;
    else
        ob1_data_contiguous(&req->data, buf, len);
    req->rank = rank;
    req->tag = tag;
    req->mode = (uint8_t)mode;
    *out = &req->head;
    return STRATA_OK;
}

int ob1_send_init(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **out)
{
    return ob1_persistent_make(comm, OB1_SEND, a->data, a->buf, a->len, a->dst, a->tag, a->mode, out);
}

int ob1_recv_init(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **out)
{
    return ob1_persistent_make(comm, OB1_RECV, a->data, a->buf, a->len, a->src, a->tag, STRATA_STANDARD, out);
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
