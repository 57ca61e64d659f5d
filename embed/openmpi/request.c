/* Requests: storage, completion, freeing, cancelling.
 *
 * A request's storage is given back when Strata is done with it (PML_STRATA_DONE) and the user has let go
 * (PML_STRATA_FREED), whichever comes second. Between the two the user may look at it. */
#include "data.h"

#include "ompi/mca/pml/base/pml_base_bsend.h"

static int request_free(struct ompi_request_t **request);
static int request_cancel(struct ompi_request_t *request, int flag);

static void construct(struct pml_strata_request *req)
{
    req->ompi.req_type = OMPI_REQUEST_PML;
    req->ompi.req_start = pml_strata_start;
    req->ompi.req_free = request_free;
    req->ompi.req_cancel = request_cancel;
    req->ompi.req_status._cancelled = 0;
}

OBJ_CLASS_INSTANCE(pml_strata_request_t, ompi_request_t, construct, NULL);

int pml_strata_requests_init(void)
{
    size_t align = strata_request_align(pml_strata.context), size;

    if (align < 64)
        align = 64;
    pml_strata.request_offset = (sizeof(struct pml_strata_request) + align - 1) / align * align;
    size = pml_strata.request_offset + strata_request_size(pml_strata.context);
    OBJ_CONSTRUCT(&pml_strata.requests, opal_free_list_t);
    pml_strata.requests_ready = true;
    return opal_free_list_init(&pml_strata.requests, size, align, OBJ_CLASS(pml_strata_request_t), 0, align, 16, -1, 64,
                               NULL, 0, NULL, NULL, NULL);
}

void pml_strata_requests_fini(void)
{
    if (pml_strata.requests_ready)
        OBJ_DESTRUCT(&pml_strata.requests);
    pml_strata.requests_ready = false;
}

struct pml_strata_request *pml_strata_request_get(enum pml_strata_kind kind, struct ompi_communicator_t *comm,
                                                  void *buf, size_t count, struct ompi_datatype_t *datatype, int peer,
                                                  int tag)
{
    struct pml_strata_request *req = (struct pml_strata_request *)opal_free_list_get(&pml_strata.requests);

    if (OPAL_UNLIKELY(!req))
        return NULL;
    OMPI_REQUEST_INIT(&req->ompi, false);
    req->ompi.req_mpi_object.comm = comm;
    req->kind = (uint8_t)kind;
    req->mode = STRATA_STANDARD;
    req->converts = false;
    req->active = false;
    atomic_init(&req->life, PML_STRATA_DONE);
    req->peer = peer;
    req->tag = tag;
    req->count = count;
    req->buf = buf;
    req->datatype = datatype;
    req->bsend = NULL;
    OBJ_RETAIN(comm);
    if (OPAL_UNLIKELY(!(datatype->super.flags & OPAL_DATATYPE_FLAG_PREDEFINED)))
        OBJ_RETAIN(datatype);
    return req;
}

void pml_strata_request_put(struct pml_strata_request *req)
{
    if (OPAL_UNLIKELY(req->bsend != NULL))
        mca_pml_base_bsend_request_free(req->bsend);
    OMPI_REQUEST_FINI(&req->ompi);
    OBJ_RELEASE(req->ompi.req_mpi_object.comm);
    if (OPAL_UNLIKELY(!(req->datatype->super.flags & OPAL_DATATYPE_FLAG_PREDEFINED)))
        OBJ_RELEASE(req->datatype);
    opal_free_list_return(&pml_strata.requests, &req->ompi.super);
}

/* What Strata held for one start of the request. */
static inline void leave_strata(struct pml_strata_request *req)
{
    if (OPAL_UNLIKELY(req->converts)) {
        pml_strata_describe_end(&req->convert);
        req->converts = false;
    }
    req->active = false;
}

void pml_strata_request_drop(struct pml_strata_request *req)
{
    leave_strata(req);
    pml_strata_request_put(req);
}

/* Marks one end of the life; true when the other has been reached already. */
static inline bool second_end(struct pml_strata_request *req, uint8_t end)
{
    uint8_t before;

    if (OPAL_LIKELY(!pml_strata.threaded)) {
        before = atomic_load_explicit(&req->life, memory_order_relaxed);
        atomic_store_explicit(&req->life, (uint8_t)(before | end), memory_order_relaxed);
    } else {
        before = atomic_fetch_or_explicit(&req->life, end, memory_order_acq_rel);
    }
    return (before & (PML_STRATA_DONE | PML_STRATA_FREED)) != 0;
}

void pml_strata_complete(void *arg, strata_request_t *sreq, const strata_status_t *status)
{
    struct pml_strata_request *req = arg;

    (void)sreq;
    leave_strata(req);
    if (OPAL_LIKELY(req->kind == PML_STRATA_RECV)) {
        pml_strata_status(&req->ompi.req_status, status);
        req->ompi.req_status.MPI_ERROR =
            req->ompi.req_status._cancelled ? OMPI_SUCCESS : pml_strata_error(status->error);
    } else {
        req->ompi.req_status.MPI_ERROR = pml_strata_error(status->error);
        req->ompi.req_status._ucount = status->length;
        req->ompi.req_status._cancelled = 0; /* the storage may be that of a receive that was cancelled */
        /* Open MPI's own users of the pml (one-sided over point-to-point) look at the tag of a send that is complete.
         */
        req->ompi.req_status.MPI_SOURCE = req->ompi.req_mpi_object.comm->c_my_rank;
        req->ompi.req_status.MPI_TAG = req->tag;
    }
    /* After this the user may free it, on another thread too: what follows must not touch it unless it is ours. */
    ompi_request_complete(&req->ompi, true);
    if (second_end(req, PML_STRATA_DONE))
        pml_strata_request_put(req);
}

static int request_free(struct ompi_request_t **request)
{
    struct pml_strata_request *req = (struct pml_strata_request *)*request;

    *request = MPI_REQUEST_NULL;
    if (second_end(req, PML_STRATA_FREED))
        pml_strata_request_put(req);
    return OMPI_SUCCESS;
}

/* Sends cannot be taken back; MPI allows that, and ob1 does the same. */
static int request_cancel(struct ompi_request_t *request, int flag)
{
    struct pml_strata_request *req = (struct pml_strata_request *)request;

    (void)flag;
    if (req->kind == PML_STRATA_RECV && req->active)
        strata_host_cancel(pml_strata_storage(req));
    return OMPI_SUCCESS;
}
