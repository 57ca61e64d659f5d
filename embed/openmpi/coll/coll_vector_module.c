/* The module's operations on blocks that differ by rank. */
#include "coll_strata.h"

#include <stdlib.h>

static int vector_alltoallv(const void *sbuf, const int *scounts, const int *sdispls, struct ompi_datatype_t *sdtype,
                            void *rbuf, const int *rcounts, const int *rdispls, struct ompi_datatype_t *rdtype,
                            struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_strata_vector out = {sbuf, scounts, sdispls, sdtype}, in = {rbuf, rcounts, rdispls, rdtype};
    struct coll_strata_call call;
    (void)module;
    return coll_strata_run(&call, coll_strata_call_alltoallv(&call, &out, &in, comm), comm);
}

static int vector_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                             const int *rcounts, const int *rdispls, struct ompi_datatype_t *rdtype,
                             struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_strata_vector in = {rbuf, rcounts, rdispls, rdtype};
    struct coll_strata_call call;
    (void)module;
    return coll_strata_run(&call, coll_strata_call_allgatherv(&call, sbuf, scount, sdtype, &in, comm), comm);
}

static int vector_ialltoallv(const void *sbuf, const int *scounts, const int *sdispls, struct ompi_datatype_t *sdtype,
                             void *rbuf, const int *rcounts, const int *rdispls, struct ompi_datatype_t *rdtype,
                             struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module)
{
    struct coll_strata_vector out = {sbuf, scounts, sdispls, sdtype}, in = {rbuf, rcounts, rdispls, rdtype};
    struct coll_strata_call *call = malloc(sizeof(*call));
    (void)module;
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return coll_strata_start(call, coll_strata_call_alltoallv(call, &out, &in, comm), comm, request);
}

static int vector_iallgatherv(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                              const int *rcounts, const int *rdispls, struct ompi_datatype_t *rdtype,
                              struct ompi_communicator_t *comm, ompi_request_t **request,
                              mca_coll_base_module_t *module)
{
    struct coll_strata_vector in = {rbuf, rcounts, rdispls, rdtype};
    struct coll_strata_call *call = malloc(sizeof(*call));
    (void)module;
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return coll_strata_start(call, coll_strata_call_allgatherv(call, sbuf, scount, sdtype, &in, comm), comm, request);
}

void coll_strata_offer_vectors(mca_coll_base_module_t *module)
{
    COLL_STRATA_OFFER(module, COLL_STRATA_ALLGATHER, vector, allgatherv);
    COLL_STRATA_OFFER(module, COLL_STRATA_ALLTOALL, vector, alltoallv);
}
