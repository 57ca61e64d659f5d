/* Collectives whose blocks differ by rank: alltoallv and allgatherv. Blocks are counted in bytes, which are the same at
 * both ends of a pair of members, while datatypes may differ. */
#include "coll_strata.h"

#include <stdlib.h>

static ptrdiff_t vector_extent(const struct ompi_datatype_t *datatype)
{
    return datatype->super.ub - datatype->super.lb;
}

static char *vector_at(const struct coll_strata_data *d, int i)
{
    return (char *)d->user + d->displs[i] * vector_extent(d->datatype);
}

/* Where they lie. Displacements may be negative, offsets are not. */
static void vector_in_place(struct coll_strata_data *d, size_t *bytes, size_t *offsets)
{
    size_t size = d->datatype->super.size;
    int first = 0;
    bool any = false;
    for (int i = 0; i < d->n_parts; i++)
        if (d->counts[i] > 0 && (!any || d->displs[i] < first)) {
            first = d->displs[i];
            any = true;
        }
    d->block = (char *)d->user + first * vector_extent(d->datatype);
    for (int i = 0; i < d->n_parts; i++) {
        bytes[i] = (size_t)d->counts[i] * size;
        offsets[i] = d->counts[i] > 0 ? (size_t)((ptrdiff_t)d->displs[i] - first) * size : 0;
    }
}

int coll_strata_vector_move(const struct coll_strata_data *d, bool pack)
{
    size_t at = 0;
    int rc = OMPI_SUCCESS;
    for (int i = 0; i < d->n_parts && rc == OMPI_SUCCESS; i++) {
        struct coll_strata_data part = {.user = vector_at(d, i),
                                        .packed = d->packed + at,
                                        .bytes = (size_t)d->counts[i] * d->datatype->super.size,
                                        .count = (size_t)d->counts[i],
                                        .datatype = d->datatype};
        rc = part.bytes ? coll_strata_data_move(&part, pack) : OMPI_SUCCESS;
        at += part.bytes;
    }
    return rc;
}

/* Describes the blocks of n members; packs them where `filled` and they have gaps. */
static int vector_open(struct coll_strata_data *d, const void *buf, const int *counts, const int *displs, int n,
                       struct ompi_datatype_t *datatype, bool filled, size_t *bytes, size_t *offsets)
{
    *d = (struct coll_strata_data){
        .user = (void *)(uintptr_t)buf, .datatype = datatype, .counts = counts, .displs = displs, .n_parts = n};
    if (coll_strata_plain(datatype)) {
        vector_in_place(d, bytes, offsets);
        return OMPI_SUCCESS;
    }
    for (int i = 0; i < n; i++) {
        bytes[i] = (size_t)counts[i] * datatype->super.size;
        offsets[i] = d->bytes;
        d->bytes += bytes[i];
    }
    d->packed = d->block = malloc(d->bytes ? d->bytes : 1);
    if (!d->packed)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return filled ? coll_strata_vector_move(d, true) : OMPI_SUCCESS;
}

/* A call of that kind with its four lists, which it owns. */
static int vector_begin(struct coll_strata_call *call, strata_coll_kind_t kind, size_t n)
{
    *call = (struct coll_strata_call){.c = STRATA_COLL_INIT(kind), .received = true};
    call->lists = malloc(4 * n * sizeof(*call->lists));
    if (!call->lists)
        return OMPI_ERR_OUT_OF_RESOURCE;
    call->c.recv_counts = call->lists;
    call->c.recv_offsets = call->lists + n;
    call->c.send_counts = call->lists + 2 * n;
    call->c.send_offsets = call->lists + 3 * n;
    return OMPI_SUCCESS;
}

int coll_strata_call_alltoallv(struct coll_strata_call *call, const struct coll_strata_vector *out,
                               const struct coll_strata_vector *in, struct ompi_communicator_t *comm)
{
    int n = ompi_comm_size(comm);
    size_t ranks = (size_t)n;
    bool in_place = out->buf == MPI_IN_PLACE;
    int rc = vector_begin(call, STRATA_ALLTOALLV, ranks);
    if (rc == OMPI_SUCCESS)
        rc = vector_open(&call->out, in->buf, in->counts, in->displs, n, in->datatype, in_place, call->lists,
                         call->lists + ranks);
    if (rc == OMPI_SUCCESS && !in_place)
        rc = vector_open(&call->in, out->buf, out->counts, out->displs, n, out->datatype, true, call->lists + 2 * ranks,
                         call->lists + 3 * ranks);
    call->c.send = in_place ? STRATA_IN_PLACE : call->in.block;
    call->c.recv = call->out.block;
    return rc;
}

int coll_strata_call_allgatherv(struct coll_strata_call *call, const void *sbuf, int scount,
                                struct ompi_datatype_t *sdtype, const struct coll_strata_vector *in,
                                struct ompi_communicator_t *comm)
{
    int n = ompi_comm_size(comm);
    size_t ranks = (size_t)n;
    bool in_place = sbuf == MPI_IN_PLACE;
    int rc = vector_begin(call, STRATA_ALLGATHERV, ranks);
    if (rc == OMPI_SUCCESS)
        rc = vector_open(&call->out, in->buf, in->counts, in->displs, n, in->datatype, in_place, call->lists,
                         call->lists + ranks);
    if (rc == OMPI_SUCCESS && !in_place)
        rc = coll_strata_data_open(&call->in, sbuf, (size_t)scount, sdtype, true);
    call->c.send = in_place ? STRATA_IN_PLACE : call->in.block;
    call->c.recv = call->out.block;
    return rc;
}
