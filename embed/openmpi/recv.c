/* Receives. A blocking one of one block goes straight through: Strata waits, and lets Open MPI's other parts have their
 * turn (host.c: idle). */
#include "data.h"

static int finish(int rc, const strata_status_t *got, ompi_status_public_t *status)
{
    if (rc != STRATA_OK && rc != STRATA_ERR_TRUNCATE)
        return pml_strata_error(rc);
    pml_strata_status(status, got);
    return OPAL_LIKELY(rc == STRATA_OK) ? OMPI_SUCCESS : pml_strata_error(rc);
}

int pml_strata_recv(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                    struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    struct pml_strata_convert convert;
    strata_status_t got = {.error = STRATA_OK};
    strata_data_t data;
    void *block;
    size_t len;
    int rc;

    if (OPAL_LIKELY(pml_strata_block(buf, count, datatype, &block, &len))) {
        rc = strata_recv(pml_strata_comm(comm), block, len, src, tag, &got);
        return finish(rc, &got, status);
    }
    pml_strata_describe(&data, false, buf, count, datatype, &convert);
    rc = strata_recv_data(pml_strata_comm(comm), &data, src, tag, &got);
    if (data.kind == STRATA_GENERIC)
        pml_strata_describe_end(&convert);
    return finish(rc, &got, status);
}

static inline void activate(struct pml_strata_request *req, strata_data_t *data)
{
    req->active = true;
    if (OPAL_LIKELY(pml_strata_block(req->buf, req->count, req->datatype, &data->u.buffer, &data->length))) {
        data->kind = STRATA_CONTIGUOUS;
        return;
    }
    pml_strata_describe(data, false, req->buf, req->count, req->datatype, &req->convert);
    req->converts = data->kind == STRATA_GENERIC;
}

int pml_strata_recv_start(struct pml_strata_request *req)
{
    strata_data_t data;
    int rc;

    activate(req, &data);
    rc = strata_host_irecv(pml_strata_comm(req->ompi.req_mpi_object.comm), &data, req->peer, req->tag,
                           pml_strata_storage(req), pml_strata_complete, req);
    return pml_strata_error(rc);
}

/* A request that is about to be started. */
static struct pml_strata_request *begin(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                                        struct ompi_communicator_t *comm)
{
    struct pml_strata_request *req = pml_strata_request_get(PML_STRATA_RECV, comm, buf, count, datatype, src, tag);

    if (OPAL_LIKELY(req != NULL)) {
        req->ompi.req_state = OMPI_REQUEST_ACTIVE;
        req->ompi.req_complete = REQUEST_PENDING;
        atomic_store_explicit(&req->life, 0, memory_order_relaxed);
    }
    return req;
}

int pml_strata_irecv(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                     struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    struct pml_strata_request *req = begin(buf, count, datatype, src, tag, comm);
    int rc;

    if (OPAL_UNLIKELY(!req))
        return OMPI_ERR_OUT_OF_RESOURCE;
    *request = &req->ompi;
    rc = pml_strata_recv_start(req);
    if (OPAL_UNLIKELY(rc != OMPI_SUCCESS)) {
        pml_strata_request_drop(req);
        *request = MPI_REQUEST_NULL;
    }
    return rc;
}

int pml_strata_irecv_init(void *buf, size_t count, struct ompi_datatype_t *datatype, int src, int tag,
                          struct ompi_communicator_t *comm, struct ompi_request_t **request)
{
    struct pml_strata_request *req = pml_strata_request_get(PML_STRATA_RECV, comm, buf, count, datatype, src, tag);

    if (!req)
        return OMPI_ERR_OUT_OF_RESOURCE;
    req->ompi.req_persistent = true;
    req->ompi.req_complete = REQUEST_COMPLETED;
    *request = &req->ompi;
    return OMPI_SUCCESS;
}

int pml_strata_imrecv(void *buf, size_t count, struct ompi_datatype_t *datatype, struct ompi_message_t **message,
                      struct ompi_request_t **request)
{
    struct ompi_message_t *m = *message;
    struct ompi_communicator_t *comm = m->comm;
    strata_message_t *taken = m->req_ptr;
    struct pml_strata_request *req = begin(buf, count, datatype, m->peer, MPI_ANY_TAG, comm);
    strata_data_t data;
    int rc;

    if (!req)
        return OMPI_ERR_OUT_OF_RESOURCE;
    *request = &req->ompi;
    activate(req, &data);
    rc = strata_host_imrecv(&taken, &data, pml_strata_storage(req), pml_strata_complete, req);
    if (rc != STRATA_OK) {
        pml_strata_request_drop(req);
        *request = MPI_REQUEST_NULL;
        return pml_strata_error(rc);
    }
    ompi_message_return(m);
    OBJ_RELEASE(comm); /* the message's; the request has its own */
    *message = MPI_MESSAGE_NULL;
    return OMPI_SUCCESS;
}

int pml_strata_mrecv(void *buf, size_t count, struct ompi_datatype_t *datatype, struct ompi_message_t **message,
                     ompi_status_public_t *status)
{
    struct ompi_request_t *request;
    int rc = pml_strata_imrecv(buf, count, datatype, message, &request);

    if (rc != OMPI_SUCCESS)
        return rc;
    ompi_request_wait_completion(request);
    rc = request->req_status.MPI_ERROR;
    if (status != MPI_STATUS_IGNORE) { /* as pml_strata_status */
        int error = status->MPI_ERROR;
        *status = request->req_status;
        status->MPI_ERROR = error;
    }
    ompi_request_free(&request);
    return rc;
}
