/* A message's data: contiguous memory passes as pointer and length; only what has holes gets a convertor. */
#ifndef PML_STRATA_DATA_H
#define PML_STRATA_DATA_H

#include "pml_strata.h"

/* True when (buf, count, datatype) is one block: then *data and *len say which. */
static inline bool pml_strata_block(const void *buf, size_t count, const struct ompi_datatype_t *datatype, void **data,
                                    size_t *len)
{
    const opal_datatype_t *d = &datatype->super;

    if (OPAL_LIKELY((d->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) &&
                    (count <= 1 || (d->flags & OPAL_DATATYPE_FLAG_NO_GAPS)))) {
        *len = count * d->size;
        *data = (char *)(uintptr_t)buf + d->true_lb;
        return true;
    }
    return false;
}

/* Describes data of any kind; `m` is used, and must stay where it is, when the result is STRATA_GENERIC. */
void pml_strata_describe(strata_data_t *out, bool sending, const void *buf, size_t count,
                         struct ompi_datatype_t *datatype, struct pml_strata_convert *m);
/* After pml_strata_describe made a STRATA_GENERIC description. */
void pml_strata_describe_end(struct pml_strata_convert *m);

#endif
