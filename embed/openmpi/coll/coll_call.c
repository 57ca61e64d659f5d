/* A collective's data and arguments, as Strata wants them. */
#include "coll_strata.h"

#include <stdlib.h>

int coll_strata_error(int rc)
{
    return rc == STRATA_OK ? OMPI_SUCCESS : rc == STRATA_ERR_NOMEM ? OMPI_ERR_OUT_OF_RESOURCE : MPI_ERR_OTHER;
}

int coll_strata_call_bcast(struct coll_strata_call *call, void *buf, int count, struct ompi_datatype_t *datatype,
                           int root, struct ompi_communicator_t *comm)
{
    bool sends = ompi_comm_rank(comm) == root;
    *call = (struct coll_strata_call){.c = STRATA_COLL_INIT(STRATA_BCAST), .received = !sends};
    int rc = coll_strata_data_open(&call->out, buf, (size_t)count, datatype, sends);
    call->c.recv = call->out.block;
    call->c.count = call->out.bytes;
    call->c.root = root;
    return rc;
}

int coll_strata_call_exchange(struct coll_strata_call *call, strata_coll_kind_t kind, const void *sbuf, size_t scount,
                              struct ompi_datatype_t *sdtype, void *rbuf, size_t rcount, struct ompi_datatype_t *rdtype,
                              struct ompi_communicator_t *comm)
{
    size_t n = (size_t)ompi_comm_size(comm);
    bool in_place = sbuf == MPI_IN_PLACE;
    *call = (struct coll_strata_call){.c = STRATA_COLL_INIT(kind), .received = true};
    int rc = coll_strata_data_open(&call->out, rbuf, rcount * n, rdtype, in_place);
    if (rc == OMPI_SUCCESS && !in_place)
        rc = coll_strata_data_open(&call->in, sbuf, kind == STRATA_ALLTOALL ? scount * n : scount, sdtype, true);
    call->c.send = in_place ? STRATA_IN_PLACE : call->in.block;
    call->c.recv = call->out.block;
    call->c.count = call->out.bytes / n;
    return rc;
}

/* By a call of MPI, since the header of operations is not installed; by its other name, so that a tool that stands
 * before MPI's calls takes it for none of the program's. */
static void call_combine(void *arg, const void *in, void *inout, size_t count)
{
    const struct coll_strata_call *call = arg;
    (void)PMPI_Reduce_local(in, inout, (int)count, call->datatype, call->op);
}

int coll_strata_call_reduction(struct coll_strata_call *call, strata_coll_kind_t kind, const void *sbuf, void *rbuf,
                               int count, struct ompi_datatype_t *datatype, struct ompi_op_t *op, int root)
{
    int commutes = 0;
    *call = (struct coll_strata_call){.c = STRATA_COLL_INIT(kind), .op = op, .datatype = datatype};
    call->c.send = sbuf == MPI_IN_PLACE ? STRATA_IN_PLACE : sbuf;
    call->c.recv = rbuf;
    call->c.count = (size_t)count;
    call->c.element = datatype->super.size;
    call->c.root = root;
    call->c.reduce = call_combine;
    call->c.reduce_arg = call;
    call->c.not_commutative = PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS || !commutes;
    return OMPI_SUCCESS;
}

int coll_strata_call_end(struct coll_strata_call *call, int rc)
{
    int closed = coll_strata_data_close(&call->out, rc == OMPI_SUCCESS && call->received);
    coll_strata_data_close(&call->in, false);
    free(call->lists);
    call->lists = NULL;
    return rc == OMPI_SUCCESS ? closed : rc;
}
