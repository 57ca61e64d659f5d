/* Sends. What Strata can send at once needs no request: blocking sends of one block go straight through, and a
 * nonblocking one that is done when the call returns is Open MPI's empty request. */
#include "data.h"

#include <string.h>
#include "ompi/mca/pml/base/pml_base_bsend.h"

static strata_mode_t mode_of(mca_pml_base_send_mode_t mode)
{
    switch (mode) {
    case MCA_PML_BASE_SEND_SYNCHRONOUS:
        return STRATA_SYNCHRONOUS;
    case MCA_PML_BASE_SEND_READY:
        return STRATA_READY;
    case MCA_PML_BASE_SEND_BUFFERED:
        return STRATA_BUFFERED;
    default:
        return STRATA_STANDARD;
    }
}

/* Copies a message into a block of the attached buffer. */
static int pack_into(void *block, const strata_data_t *data)
{
    if (data->kind == STRATA_CONTIGUOUS) {
        memcpy(block, data->u.buffer, data->length);
        return OMPI_SUCCESS;
    }
    return data->u.convert.pack(data->u.convert.user, 0, block, data->length) == (ptrdiff_t)data->length ? OMPI_SUCCESS
                                                                                                         : OMPI_ERROR;
}

/* A buffered send: packed into the attached buffer, from where a request that nobody waits for sends it. A message
 * without data needs no buffer, as in ob1. */
static int send_buffered(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                         struct ompi_communicator_t *comm)
{
    struct pml_strata_convert convert;
    strata_data_t data, copy = {.kind = STRATA_CONTIGUOUS};
    struct pml_strata_request *req;
    void *block = NULL;
    int rc = OMPI_SUCCESS;

    pml_strata_describe(&data, true, buf, count, datatype, &convert);
    if (data.length > 0) {
        block = mca_pml_base_bsend_request_alloc_buf(data.length);
        rc = block ? pack_into(block, &data) : MPI_ERR_BUFFER;
    }
    if (data.kind == STRATA_GENERIC)
        pml_strata_describe_end(&convert);
    req = rc == OMPI_SUCCESS ? pml_strata_request_get(PML_STRATA_SEND, comm, NULL, 0, datatype, dst, tag) : NULL;
    if (!req) {
        if (block)
            mca_pml_base_bsend_request_free(block);
        return rc == OMPI_SUCCESS ? OMPI_ERR_OUT_OF_RESOURCE : rc;
    }
    req->bsend = block;
    copy.length = data.length;
    copy.u.buffer = block;
    atomic_store_explicit(&req->life, PML_STRATA_FREED, memory_order_relaxed);
    rc = strata_host_isend(pml_strata_comm(comm), &copy, dst, tag, STRATA_STANDARD, pml_strata_storage(req),
                           pml_strata_complete, req);
    if (rc != STRATA_OK) /* 1: has left already */
        pml_strata_request_put(req);
    return rc > 0 ? OMPI_SUCCESS : pml_strata_error(rc);
}

/* A blocking send that is not one block of memory in one of the plain modes. */
static int send_odd(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                    strata_mode_t mode, struct ompi_communicator_t *comm)
{
    struct pml_strata_convert convert;
    strata_data_t data;
    int rc;

    if (mode == STRATA_BUFFERED)
        return send_buffered(buf, count, datatype, dst, tag, comm);
    pml_strata_describe(&data, true, buf, count, datatype, &convert);
    rc = strata_send_data(pml_strata_comm(comm), &data, dst, tag, mode);
    if (data.kind == STRATA_GENERIC)
        pml_strata_describe_end(&convert);
    return pml_strata_error(rc);
}

int pml_strata_send(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                    mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
    void *data;
    size_t len;
    int rc;

    if (OPAL_UNLIKELY(mode != MCA_PML_BASE_SEND_STANDARD || !pml_strata_block(buf, count, datatype, &data, &len)))
        return send_odd(buf, count, datatype, dst, tag, mode_of(mode), comm);
    rc = strata_send(pml_strata_comm(comm), data, len, dst, tag);
    return OPAL_LIKELY(rc == STRATA_OK) ? OMPI_SUCCESS : pml_strata_error(rc);
}

/* Gives a request to Strata. OMPI_SUCCESS: it is under way, or has been completed. */
int pml_strata_send_start(struct pml_strata_request *req)
{
    strata_comm_t *comm = pml_strata_comm(req->ompi.req_mpi_object.comm);
    strata_data_t data;
    int rc;

    if (req->mode == STRATA_BUFFERED) {
        rc = send_buffered(req->buf, req->count, req->datatype, req->peer, req->tag, req->ompi.req_mpi_object.comm);
        if (rc == OMPI_SUCCESS)
            pml_strata_complete(req, NULL, &(strata_status_t){.error = STRATA_OK});
        return rc;
    }
    pml_strata_describe(&data, true, req->buf, req->count, req->datatype, &req->convert);
    req->converts = data.kind == STRATA_GENERIC;
    req->active = true;
    rc = strata_host_isend(comm, &data, req->peer, req->tag, (strata_mode_t)req->mode, pml_strata_storage(req),
                           pml_strata_complete, req);
    if (rc == 1) /* has left already: nobody will call */
        pml_strata_complete(req, NULL, &(strata_status_t){.error = STRATA_OK, .length = data.length});
    return rc < 0 ? pml_strata_error(rc) : OMPI_SUCCESS;
}

int pml_strata_isend(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                     mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    struct pml_strata_request *req;
    strata_data_t data = {.kind = STRATA_CONTIGUOUS};
    int rc;

    if (OPAL_LIKELY(mode == MCA_PML_BASE_SEND_STANDARD) &&
        OPAL_LIKELY(pml_strata_block(buf, count, datatype, &data.u.buffer, &data.length))) {
        rc = strata_host_isend(pml_strata_comm(comm), &data, dst, tag, STRATA_STANDARD, NULL, NULL, NULL);
        if (OPAL_LIKELY(rc == 1)) {
            *request = &ompi_request_empty;
            return OMPI_SUCCESS;
        }
        if (rc != STRATA_ERR_AGAIN)
            return pml_strata_error(rc);
    } else if (mode == MCA_PML_BASE_SEND_BUFFERED) {
        rc = send_buffered(buf, count, datatype, dst, tag, comm);
        *request = &ompi_request_empty;
        return rc;
    }
    req = pml_strata_request_get(PML_STRATA_SEND, comm, (void *)(uintptr_t)buf, count, datatype, dst, tag);
    if (!req)
        return OMPI_ERR_OUT_OF_RESOURCE;
    req->mode = (uint8_t)mode_of(mode);
    req->ompi.req_state = OMPI_REQUEST_ACTIVE;
    req->ompi.req_complete = REQUEST_PENDING;
    atomic_store_explicit(&req->life, 0, memory_order_relaxed);
    *request = &req->ompi;
    rc = pml_strata_send_start(req);
    if (rc != OMPI_SUCCESS) {
        pml_strata_request_drop(req);
        *request = MPI_REQUEST_NULL;
    }
    return rc;
}

int pml_strata_isend_init(const void *buf, size_t count, struct ompi_datatype_t *datatype, int dst, int tag,
                          mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                          struct ompi_request_t **request)
{
    struct pml_strata_request *req =
        pml_strata_request_get(PML_STRATA_SEND, comm, (void *)(uintptr_t)buf, count, datatype, dst, tag);

    if (!req)
        return OMPI_ERR_OUT_OF_RESOURCE;
    req->mode = (uint8_t)mode_of(mode);
    req->ompi.req_persistent = true;
    req->ompi.req_complete = REQUEST_COMPLETED;
    *request = &req->ompi;
    return OMPI_SUCCESS;
}
