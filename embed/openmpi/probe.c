/* Probes and matched probes. */
#include "pml_strata.h"

/* A program may poll with MPI_Iprobe until something comes: what else Open MPI moves has to move, and on a crowded
 * machine the processor has to go to whoever would send (mpi_yield_when_idle). */
static void missed(void)
{
    opal_progress();
}

int pml_strata_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched, ompi_status_public_t *status)
{
    strata_status_t got;
    int rc = strata_iprobe(pml_strata_comm(comm), src, tag, matched, &got);

    if (rc == STRATA_OK && *matched)
        pml_strata_status(status, &got);
    else
        missed();
    return pml_strata_error(rc);
}

int pml_strata_probe(int src, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    strata_status_t got;
    int rc = strata_probe(pml_strata_comm(comm), src, tag, &got);

    if (rc == STRATA_OK)
        pml_strata_status(status, &got);
    return pml_strata_error(rc);
}

/* Wraps what Strata took out of matching. The program may free the communicator before it receives the message. */
static int wrap(struct ompi_communicator_t *comm, strata_message_t *taken, const strata_status_t *got,
                struct ompi_message_t **message)
{
    struct ompi_message_t *m = ompi_message_alloc();

    if (!m)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OBJ_RETAIN(comm);
    m->comm = comm;
    m->req_ptr = taken;
    m->peer = got->source;
    m->count = got->length;
    *message = m;
    return OMPI_SUCCESS;
}

int pml_strata_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                       struct ompi_message_t **message, ompi_status_public_t *status)
{
    strata_message_t *taken;
    strata_status_t got;
    int rc = strata_improbe(pml_strata_comm(comm), src, tag, matched, &taken, &got);

    if (rc != STRATA_OK || !*matched) {
        missed();
        return pml_strata_error(rc);
    }
    pml_strata_status(status, &got);
    return wrap(comm, taken, &got, message);
}

int pml_strata_mprobe(int src, int tag, struct ompi_communicator_t *comm, struct ompi_message_t **message,
                      ompi_status_public_t *status)
{
    strata_message_t *taken;
    strata_status_t got;
    int rc = strata_mprobe(pml_strata_comm(comm), src, tag, &taken, &got);

    if (rc != STRATA_OK)
        return pml_strata_error(rc);
    pml_strata_status(status, &got);
    return wrap(comm, taken, &got, message);
}
