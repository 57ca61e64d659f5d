/* Cancelling receives that have not matched. */
#include "comm.h"
#include "match.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "request.h"

int ob1_cancel(strata_request_t *request)
{
    struct ob1_req *req = (struct ob1_req *)request;
    struct ob1_comm *c = (struct ob1_comm *)request->comm;
    struct ob1 *pml;

    if ((request->flags & ST_REQ_STATIC) || request->kind == OB1_SEND)
        return STRATA_ERR_UNSUPPORTED;
    pml = ob1_of(request->comm);
    ob1_lock(pml);
    /* The flag `matched` is only set on the long way; a receive that the hot path completed is not active any more. */
    if (!req->matched && atomic_load_explicit(&request->state, memory_order_acquire) == ST_REQ_ACTIVE &&
        !(request->end_bits & OB1_END_QUEUED)) {
        ob1_match_cancel(&c->match, &req->posted);
        ob1_status(req, req->rank, req->tag, STRATA_ERR_CANCELLED, 0, 0);
        ob1_req_end(pml, req);
        st_worker_wake(pml->head.worker); /* another thread may wait for it */
    }
    ob1_leave(pml);
    return STRATA_OK;
}
