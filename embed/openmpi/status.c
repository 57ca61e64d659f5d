/* Statuses and errors, from Strata's to Open MPI's. */
#include "pml_strata.h"

int pml_strata_error(int rc)
{
    switch (rc) {
    case STRATA_OK:
        return OMPI_SUCCESS;
    case STRATA_ERR_TRUNCATE:
        return MPI_ERR_TRUNCATE;
    case STRATA_ERR_NOMEM:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case STRATA_ERR_RANK:
        return MPI_ERR_RANK;
    case STRATA_ERR_TAG:
        return MPI_ERR_TAG;
    case STRATA_ERR_ARG:
        return OMPI_ERR_BAD_PARAM;
    case STRATA_ERR_BUFFER:
        return MPI_ERR_BUFFER;
    default: /* a peer that is dead or out of reach, among others; Strata has said which */
        return MPI_ERR_OTHER;
    }
}

/* As ob1 reports: the count of a truncated receive is the length that was sent. */
void pml_strata_status(ompi_status_public_t *to, const strata_status_t *from)
{
    if (to == MPI_STATUS_IGNORE)
        return;
    to->MPI_SOURCE = from->source;
    to->MPI_TAG = from->tag;
    to->_cancelled = from->error == STRATA_ERR_CANCELLED;
    to->_ucount = from->error == STRATA_ERR_TRUNCATE ? from->sent : from->length;
}
