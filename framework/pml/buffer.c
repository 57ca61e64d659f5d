/* The buffer of buffered sends belongs to the PML. */
#include "framework/base/context.h"

int strata_buffer_attach(strata_t *s, void *buffer, size_t size)
{
    if (!s || !buffer || size == 0)
        return STRATA_ERR_ARG;
    return s->pml->ops->buffer_attach(s->pml, buffer, size);
}

int strata_buffer_detach(strata_t *s, void **buffer, size_t *size)
{
    if (!s || !buffer || !size)
        return STRATA_ERR_ARG;
    return s->pml->ops->buffer_detach(s->pml, buffer, size);
}
