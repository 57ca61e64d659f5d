/* Starting persistent requests. */
#include "data.h"

static int start_one(struct pml_strata_request *req)
{
    /* Another thread may have been told that the last start is complete a moment before the thread that completed it
     * has let go of the request. */
    while (OPAL_UNLIKELY(!(atomic_load_explicit(&req->life, memory_order_acquire) & PML_STRATA_DONE)))
        ;
    req->ompi.req_state = OMPI_REQUEST_ACTIVE;
    req->ompi.req_status._cancelled = 0;
    req->ompi.req_complete = REQUEST_PENDING;
    atomic_store_explicit(&req->life, 0, memory_order_relaxed);
    int rc = req->kind == PML_STRATA_SEND ? pml_strata_send_start(req) : pml_strata_recv_start(req);
    if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) { /* inactive again: it can be started anew, or freed */
        if (req->converts)
            pml_strata_describe_end(&req->convert);
        req->converts = req->active = false;
        req->ompi.req_state = OMPI_REQUEST_INACTIVE;
        req->ompi.req_complete = REQUEST_COMPLETED;
        atomic_store_explicit(&req->life, PML_STRATA_DONE, memory_order_release);
    }
    return rc;
}

int pml_strata_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        if (!requests[i] || requests[i]->req_type != OMPI_REQUEST_PML)
            continue;
        int rc = start_one((struct pml_strata_request *)requests[i]);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}
