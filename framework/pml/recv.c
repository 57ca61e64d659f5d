/* Receives. strata_recv is the hot path: one branch for everything unusual, then a tail call. */
#include "framework/pml/veneer.h"

static __attribute__((noinline)) int pml_recv_odd(strata_comm_t *comm, void *buf, size_t len, int src, int tag,
                                                  strata_status_t *status)
{
    int rc = st_check_buffer(buf, len);
    if (rc == STRATA_OK)
        rc = st_check_src(comm, src, tag);
    if (rc == ST_TO_NOBODY) {
        st_status_nobody(status);
        return STRATA_OK;
    }
    return rc != STRATA_OK ? rc : comm->ops->recv(comm, buf, len, src, tag, status);
}

int strata_recv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status)
{
    if (ST_UNLIKELY(st_src_odd(comm, src) || tag < STRATA_ANY_TAG || buf == NULL))
        return pml_recv_odd(comm, buf, len, src, tag, status);
    return comm->ops->recv(comm, buf, len, src, tag, status);
}

static int pml_recv_begin(strata_comm_t *comm, const struct st_pml_recv *a, int checked, strata_request_t **req)
{
    if (checked == STRATA_OK && req)
        return comm->ops->irecv(comm, a, req);
    if (checked != ST_TO_NOBODY || !req)
        return checked < 0 ? checked : STRATA_ERR_ARG;
    *req = st_request_null_recv();
    return STRATA_OK;
}

int strata_irecv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_request_t **req)
{
    struct st_pml_recv a = {.buf = buf, .len = len, .src = src, .tag = tag};
    if (ST_UNLIKELY(st_src_odd(comm, src) || tag < STRATA_ANY_TAG || buf == NULL || req == NULL)) {
        int rc = st_check_buffer(buf, len);
        return pml_recv_begin(comm, &a, rc != STRATA_OK ? rc : st_check_src(comm, src, tag), req);
    }
    return comm->ops->irecv(comm, &a, req);
}

int strata_irecv_data(strata_comm_t *comm, const strata_data_t *data, int src, int tag, strata_request_t **req)
{
    int rc = st_check_recv(comm, data, src, tag);
    if (rc < 0)
        return rc;
    struct st_pml_recv a = st_recv_args(data, src, tag);
    return pml_recv_begin(comm, &a, rc, req);
}

int strata_recv_data(strata_comm_t *comm, const strata_data_t *data, int src, int tag, strata_status_t *status)
{
    int rc = st_check_recv(comm, data, src, tag);
    if (rc == ST_TO_NOBODY) {
        st_status_nobody(status);
        return STRATA_OK;
    }
    if (rc != STRATA_OK)
        return rc;
    if (data->kind == STRATA_CONTIGUOUS)
        return comm->ops->recv(comm, data->u.buffer, data->length, src, tag, status);
    struct st_pml_recv a = st_recv_args(data, src, tag);
    strata_request_t *req = NULL;
    rc = comm->ops->irecv(comm, &a, &req);
    return rc != STRATA_OK ? rc : strata_wait(&req, status);
}
