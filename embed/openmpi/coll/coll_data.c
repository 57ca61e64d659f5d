/* Data with gaps, through Open MPI's convertor. */
#include "coll_strata.h"

#include <stdlib.h>

#include "ompi/proc/proc.h"
#include "opal/datatype/opal_convertor.h"

bool coll_strata_plain(const struct ompi_datatype_t *datatype)
{
    const opal_datatype_t *d = &datatype->super;
    return (d->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) && (d->flags & OPAL_DATATYPE_FLAG_NO_GAPS) && d->lb == 0 &&
           d->true_lb == 0 && (size_t)(d->ub - d->lb) == d->size;
}

int coll_strata_data_move(const struct coll_strata_data *d, bool pack)
{
    opal_convertor_t c;
    struct iovec v = {d->packed, d->bytes};
    uint32_t n = 1;
    size_t moved = d->bytes, done = 0;
    int rc = 0;
    OBJ_CONSTRUCT(&c, opal_convertor_t);
    if (pack)
        opal_convertor_copy_and_prepare_for_send(ompi_proc_local()->super.proc_convertor, &d->datatype->super, d->count,
                                                 d->user, 0, &c);
    else
        opal_convertor_copy_and_prepare_for_recv(ompi_proc_local()->super.proc_convertor, &d->datatype->super, d->count,
                                                 d->user, 0, &c);
    while (rc == 0 && done < d->bytes) { /* it stops at boundaries of its own */
        v.iov_base = d->packed + done;
        v.iov_len = moved = d->bytes - done;
        rc = pack ? opal_convertor_pack(&c, &v, &n, &moved) : opal_convertor_unpack(&c, &v, &n, &moved);
        if (rc < 0 || moved == 0)
            break;
        done += moved;
    }
    OBJ_DESTRUCT(&c);
    return rc >= 0 && done == d->bytes ? OMPI_SUCCESS : OMPI_ERROR;
}

int coll_strata_data_open(struct coll_strata_data *d, const void *buf, size_t count, struct ompi_datatype_t *datatype,
                          bool filled)
{
    *d = (struct coll_strata_data){
        .user = (void *)(uintptr_t)buf, .count = count, .datatype = datatype, .bytes = count * datatype->super.size};
    if (coll_strata_plain(datatype) || d->bytes == 0) {
        d->block = d->user;
        return OMPI_SUCCESS;
    }
    d->packed = d->block = malloc(d->bytes);
    if (!d->packed)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return filled ? coll_strata_data_move(d, true) : OMPI_SUCCESS;
}

int coll_strata_data_close(struct coll_strata_data *d, bool received)
{
    int rc = OMPI_SUCCESS;
    if (received && d->packed)
        rc = d->counts ? coll_strata_vector_move(d, false) : coll_strata_data_move(d, false);
    free(d->packed);
    d->packed = NULL;
    return rc;
}
