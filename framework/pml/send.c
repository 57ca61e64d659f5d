/* Sends. strata_send is the hot path: one branch for everything unusual, then a tail call. */
#include "framework/pml/veneer.h"

/* Whatever strata_send and its kin do not pass on at once. */
static __attribute__((noinline)) int pml_send_odd(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag,
                                                  strata_mode_t mode)
{
    int rc = st_check_buffer(buf, len);
    if (rc == STRATA_OK)
        rc = st_check_dst(comm, dst, tag);
    if (rc != STRATA_OK)
        return rc == ST_TO_NOBODY ? STRATA_OK : rc;
    return comm->ops->send(comm, buf, len, dst, tag, mode);
}

static inline __attribute__((always_inline)) int pml_send_mode(strata_comm_t *comm, const void *buf, size_t len,
                                                               int dst, int tag, strata_mode_t mode)
{
    if (ST_UNLIKELY(st_dst_odd(comm, dst) || tag < 0 || buf == NULL))
        return pml_send_odd(comm, buf, len, dst, tag, mode);
    return comm->ops->send(comm, buf, len, dst, tag, mode);
}

int strata_send(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag)
{
    return pml_send_mode(comm, buf, len, dst, tag, STRATA_STANDARD);
}

int strata_ssend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag)
{
    return pml_send_mode(comm, buf, len, dst, tag, STRATA_SYNCHRONOUS);
}

int strata_bsend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag)
{
    return pml_send_mode(comm, buf, len, dst, tag, STRATA_BUFFERED);
}

int strata_rsend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag)
{
    return pml_send_mode(comm, buf, len, dst, tag, STRATA_READY);
}

static int pml_send_begin(strata_comm_t *comm, const struct st_pml_send *a, int checked, strata_request_t **req)
{
    if (checked == STRATA_OK && req)
        return comm->ops->isend(comm, a, req);
    if (checked != ST_TO_NOBODY || !req)
        return checked < 0 ? checked : STRATA_ERR_ARG;
    *req = st_request_null_send();
    return STRATA_OK;
}

static inline __attribute__((always_inline)) int pml_isend_mode(strata_comm_t *comm, const void *buf, size_t len,
                                                                int dst, int tag, strata_mode_t mode,
                                                                strata_request_t **req)
{
    struct st_pml_send a = {.buf = buf, .len = len, .dst = dst, .tag = tag, .mode = mode};
    if (ST_UNLIKELY(st_dst_odd(comm, dst) || tag < 0 || buf == NULL || req == NULL)) {
        int rc = st_check_buffer(buf, len);
        return pml_send_begin(comm, &a, rc != STRATA_OK ? rc : st_check_dst(comm, dst, tag), req);
    }
    return comm->ops->isend(comm, &a, req);
}

int strata_isend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_request_t **req)
{
    return pml_isend_mode(comm, buf, len, dst, tag, STRATA_STANDARD, req);
}

int strata_isend_mode(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode,
                      strata_request_t **req)
{
    int rc = st_check_mode(mode);
    return rc != STRATA_OK ? rc : pml_isend_mode(comm, buf, len, dst, tag, mode, req);
}

int strata_isend_data(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                      strata_request_t **req)
{
    int rc = st_check_send(comm, data, dst, tag, mode);
    if (rc < 0)
        return rc;
    struct st_pml_send a = st_send_args(data, dst, tag, mode);
    return pml_send_begin(comm, &a, rc, req);
}

int strata_send_data(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode)
{
    int rc = st_check_send(comm, data, dst, tag, mode);
    if (rc != STRATA_OK)
        return rc == ST_TO_NOBODY ? STRATA_OK : rc;
    if (data->kind == STRATA_CONTIGUOUS)
        return comm->ops->send(comm, data->u.buffer, data->length, dst, tag, mode);
    struct st_pml_send a = st_send_args(data, dst, tag, mode);
    strata_request_t *req = NULL;
    rc = comm->ops->isend(comm, &a, &req);
    return rc != STRATA_OK ? rc : strata_wait(&req, STRATA_STATUS_IGNORE);
}

int strata_sendrecv(strata_comm_t *comm, const void *sbuf, size_t slen, int dst, int stag, void *rbuf, size_t rlen,
                    int src, int rtag, strata_status_t *status)
{
    strata_request_t *req = NULL;
    int rc = strata_irecv(comm, rbuf, rlen, src, rtag, &req);
    if (rc != STRATA_OK)
        return rc;
    rc = strata_send(comm, sbuf, slen, dst, stag);
    if (rc != STRATA_OK) {
        /* The receive must not stay behind: its buffer is the caller's again on return. */
        strata_cancel(req);
        strata_wait(&req, STRATA_STATUS_IGNORE);
        return rc;
    }
    return strata_wait(&req, status);
}
