/* Nonblocking collectives: requests of Open MPI, completed from its progress loop once Strata's are complete.
 *
 * Open MPI's layer above keeps operation and datatypes in the request, as its own components make it: of class
 * ompi_coll_base_nbc_request_t. Its struct is in no installed header that can be included; the class suffices. */
#include "coll_strata.h"

#include <pthread.h>
#include <stdlib.h>

#include "opal/runtime/opal_progress.h"

OMPI_DECLSPEC extern opal_class_t ompi_coll_base_nbc_request_t_class;

/* MPI-3.1, section 5.12: a pending one must not be freed. It is not, as in libnbc: its completion is still to come. */
static int request_free(ompi_request_t **request)
{
    ompi_request_t *r = *request;
    if (!REQUEST_COMPLETE(r))
        return MPI_ERR_REQUEST;
    *request = MPI_REQUEST_NULL;
    OMPI_REQUEST_FINI(r);
    OBJ_RELEASE(r);
    return OMPI_SUCCESS;
}

static int request_cancel(ompi_request_t *request, int flag)
{
    (void)request, (void)flag;
    return MPI_ERR_REQUEST; /* MPI-3.1, section 5.12: they are not cancelled */
}

static ompi_request_t *request_new(struct ompi_communicator_t *comm)
{
    ompi_request_t *r = (ompi_request_t *)(void *)opal_obj_new(&ompi_coll_base_nbc_request_t_class);
    if (!r)
        return NULL;
    OMPI_REQUEST_INIT(r, false);
    r->req_type = OMPI_REQUEST_COLL;
    r->req_state = OMPI_REQUEST_ACTIVE;
    r->req_mpi_object.comm = comm;
    r->req_free = request_free;
    r->req_cancel = request_cancel;
    r->req_status._cancelled = 0;
    r->req_status._ucount = 0;
    r->req_status.MPI_SOURCE = MPI_ANY_SOURCE;
    r->req_status.MPI_TAG = MPI_ANY_TAG;
    r->req_status.MPI_ERROR = OMPI_SUCCESS;
    return r;
}

/* The user may free the operation and datatypes, and the communicator, before the end. */
static void request_hold(const struct coll_strata_call *call, int by)
{
    void *const held[] = {call->op, call->datatype, call->in.datatype, call->out.datatype};
    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
        opal_object_t *o = held[i];
        if (o && by > 0) {
            OBJ_RETAIN(o);
        } else if (o) {
            OBJ_RELEASE(o);
        }
    }
}

static void request_complete(struct coll_strata_call *call)
{
    struct ompi_communicator_t *comm = call->comm;
    ompi_request_t *r = call->ompi;
    int rc = coll_strata_error(strata_coll_wait(&call->req, NULL));
    r->req_status.MPI_ERROR = coll_strata_call_end(call, rc);
    request_hold(call, -1);
    free(call);
    ompi_request_complete(r, true);
    OBJ_RELEASE(comm);
}

/* Takes a complete call out of the list; NULL: there is none, or another thread looks. */
static struct coll_strata_call *request_take(void)
{
    struct coll_strata_call *found = NULL;
    if (pthread_mutex_trylock(&coll_strata.lock) != 0)
        return NULL;
    for (struct coll_strata_call **at = &coll_strata.under_way; *at && !found;) {
        if (strata_coll_done((*at)->req)) {
            found = *at;
            *at = found->next;
            atomic_fetch_sub_explicit(&coll_strata.n_under_way, 1, memory_order_relaxed);
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&coll_strata.lock);
    return found;
}

static int request_progress(void)
{
    struct coll_strata_call *call;
    int events = 0;
    while (atomic_load_explicit(&coll_strata.n_under_way, memory_order_relaxed) > 0 &&
           (call = request_take()) != NULL) {
        request_complete(call);
        events++;
    }
    return events;
}

int coll_strata_start(struct coll_strata_call *call, int rc, struct ompi_communicator_t *comm, ompi_request_t **request)
{
    if (rc == OMPI_SUCCESS && !(call->ompi = request_new(comm)))
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    if (rc == OMPI_SUCCESS)
        rc = coll_strata_error(strata_coll_start((strata_comm_t *)(void *)comm->c_pml_comm, &call->c, &call->req));
    if (rc != OMPI_SUCCESS) {
        if (call->ompi)
            OBJ_RELEASE(call->ompi);
        rc = coll_strata_call_end(call, rc);
        free(call);
        return rc;
    }
    OBJ_RETAIN(comm);
    request_hold(call, 1);
    call->comm = comm;
    *request = call->ompi;
    pthread_mutex_lock(&coll_strata.lock);
    if (!coll_strata.registered)
        coll_strata.registered = opal_progress_register(request_progress) == OPAL_SUCCESS;
    call->next = coll_strata.under_way;
    coll_strata.under_way = call;
    atomic_fetch_add_explicit(&coll_strata.n_under_way, 1, memory_order_relaxed);
    pthread_mutex_unlock(&coll_strata.lock);
    return OMPI_SUCCESS;
}
