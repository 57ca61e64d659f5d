/* Requests outside of completion: persistent ones, cancelling, letting go. */
#include "framework/pml/veneer.h"

int strata_send_init(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                     strata_request_t **req)
{
    int rc = req ? st_check_send(comm, data, dst, tag, mode) : STRATA_ERR_ARG;
    if (rc < 0)
        return rc;
    if (rc == ST_TO_NOBODY)
        return st_null_init(comm, true, req);
    struct st_pml_send a = st_send_args(data, dst, tag, mode);
    return comm->ops->send_init(comm, &a, req);
}

int strata_recv_init(strata_comm_t *comm, const strata_data_t *data, int src, int tag, strata_request_t **req)
{
    int rc = req ? st_check_recv(comm, data, src, tag) : STRATA_ERR_ARG;
    if (rc < 0)
        return rc;
    if (rc == ST_TO_NOBODY)
        return st_null_init(comm, false, req);
    struct st_pml_recv a = st_recv_args(data, src, tag);
    return comm->ops->recv_init(comm, &a, req);
}

int strata_start(strata_request_t *req)
{
    if (!req)
        return STRATA_ERR_ARG;
    if (!(req->flags & ST_REQ_PERSISTENT) || atomic_load_explicit(&req->state, memory_order_acquire) != ST_REQ_INACTIVE)
        return STRATA_ERR_STATE;
    if (req->flags & ST_REQ_NULL) {
        st_null_start(req);
        return STRATA_OK;
    }
    return req->comm->ops->start(req);
}

int strata_startall(size_t n, strata_request_t *const reqs[])
{
    if (n > 0 && !reqs)
        return STRATA_ERR_ARG;
    for (size_t i = 0; i < n; i++) {
        int rc = strata_start(reqs[i]);
        if (rc != STRATA_OK)
            return rc;
    }
    return STRATA_OK;
}

int strata_cancel(strata_request_t *req)
{
    if (!req)
        return STRATA_ERR_ARG;
    if (req->flags & ST_REQ_STATIC) /* a receive from nobody is complete: too late, which is no error */
        return req == st_request_null_recv() ? STRATA_OK : STRATA_ERR_UNSUPPORTED;
    if (atomic_load_explicit(&req->state, memory_order_acquire) == ST_REQ_INACTIVE)
        return STRATA_ERR_STATE;
    return req->flags & ST_REQ_NULL ? STRATA_OK : req->comm->ops->cancel(req);
}

int strata_request_free(strata_request_t **req)
{
    if (!req || !*req)
        return STRATA_ERR_ARG;
    strata_request_t *r = *req;
    *req = NULL;
    if (r->flags & ST_REQ_STATIC)
        return STRATA_OK;
    if (r->flags & ST_REQ_NULL)
        st_null_free(r);
    else
        r->comm->ops->request_free(r);
    return STRATA_OK;
}
