/* The lengths of a communicator's queues. */
#include "framework/base/context.h"

int strata_comm_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted)
{
    if (!comm)
        return STRATA_ERR_ARG;
    if (!comm->ops->queues)
        return STRATA_ERR_UNSUPPORTED;
    st_context_lock(comm->worker->context);
    comm->ops->queues(comm, unexpected, posted);
    st_context_unlock(comm->worker->context);
    return STRATA_OK;
}
