/* Cancelling receives that have not matched. */
#include "ob1.h"
#include "ob1_inl.h"
#include "recv.h"
#include "request.h"

int ob1_cancel(strata_request_t *request)
{
    struct ob1_req *req = (struct ob1_req *)request;
    struct ob1 *pml;

    if ((request->flags & ST_REQ_STATIC) || request->kind == OB1_SEND)
        return STRATA_ERR_UNSUPPORTED;
    pml = ob1_of(request->comm);
    ob1_lock(pml);
    /* The flag `matched` is only set on the long way; a receive that the hot path completed is not active any more. */
    if (!req->matched && atomic_load_explicit(&request->state, memory_order_acquire) == ST_REQ_ACTIVE &&
        !(request->end_bits & OB1_END_QUEUED)) {
        ob1_recv_withdraw(pml, &req->posted, STRATA_ERR_CANCELLED);
        st_worker_wake(pml->head.worker); /* another thread may wait for it */
    }
    ob1_leave(pml);
    return STRATA_OK;
}
