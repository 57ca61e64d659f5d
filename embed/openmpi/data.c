/* Data with holes, through Open MPI's convertor. */
#include "data.h"

#include <stdlib.h>

/* Goes on where the convertor is. It stops at its own boundaries, so that one call may do less than was asked. */
static ptrdiff_t advance(opal_convertor_t *c, void *bytes, size_t length, bool packing)
{
    size_t done = 0;

    while (done < length) {
        struct iovec v = {(char *)bytes + done, length - done};
        uint32_t n = 1;
        size_t moved = length - done;
        int rc = packing ? opal_convertor_pack(c, &v, &n, &moved) : opal_convertor_unpack(c, &v, &n, &moved);
        if (rc < 0)
            return STRATA_ERR_ARG;
        done += moved;
        if (rc != 0 || moved == 0)
            break;
    }
    return (ptrdiff_t)done;
}

static void prepare(opal_convertor_t *c, const opal_convertor_t *like, size_t element, bool packing)
{
    opal_convertor_t *mine = ompi_proc_local()->super.proc_convertor;
    ptrdiff_t extent;
    char *at;

    opal_datatype_type_extent(like->pDesc, &extent);
    at = (char *)like->pBaseBuf + (ptrdiff_t)element * extent;
    OBJ_CONSTRUCT(c, opal_convertor_t);
    if (packing)
        opal_convertor_copy_and_prepare_for_send(mine, like->pDesc, like->count - element, at, 0, c);
    else
        opal_convertor_copy_and_prepare_for_recv(mine, like->pDesc, like->count - element, at, 0, c);
}

/* Moves a new convertor on by less than an element. That of a receiver is given what is there already. */
static ptrdiff_t skip(opal_convertor_t *c, const opal_convertor_t *like, size_t element, size_t length, bool packing)
{
    size_t room = length + sizeof(long double _Complex); /* packing never stops within a basic element */
    char *bytes = malloc(room);
    opal_convertor_t reader;
    ptrdiff_t rc;

    if (!bytes)
        return STRATA_ERR_NOMEM;
    if (packing) {
        rc = advance(c, bytes, length, true);
    } else {
        prepare(&reader, like, element, true);
        rc = advance(&reader, bytes, room, true);
        OBJ_DESTRUCT(&reader);
        if (rc >= (ptrdiff_t)length)
            rc = advance(c, bytes, length, false);
    }
    free(bytes);
    return rc < 0 ? rc : rc == (ptrdiff_t)length ? STRATA_OK : STRATA_ERR_ARG;
}

/* Somewhere else: the fragments of a message come in any order, and one that could not be sent is packed again.
 * opal_convertor_set_position of Open MPI 4.1.4 is of no use: within a type of nested vectors it arrives at a wrong
 * place and writes beyond its stack. */
static __attribute__((noinline)) ptrdiff_t jump(const opal_convertor_t *like, size_t offset, void *bytes, size_t length,
                                                bool packing)
{
    opal_convertor_t c;
    size_t size, element;
    ptrdiff_t rc = STRATA_OK;

    opal_datatype_type_size(like->pDesc, &size);
    if (size == 0 || offset / size >= like->count)
        return 0;
    element = offset / size;
    prepare(&c, like, element, packing);
    if (offset % size)
        rc = skip(&c, like, element, offset % size, packing);
    if (rc == STRATA_OK)
        rc = advance(&c, bytes, length, packing);
    OBJ_DESTRUCT(&c);
    return rc;
}

static ptrdiff_t convert(opal_convertor_t *c, size_t offset, void *bytes, size_t length, bool packing)
{
    return offset == c->bConverted ? advance(c, bytes, length, packing) : jump(c, offset, bytes, length, packing);
}

static ptrdiff_t pack(void *user, size_t offset, void *dst, size_t length)
{
    return convert(user, offset, dst, length, true);
}

static ptrdiff_t unpack(void *user, size_t offset, const void *src, size_t length)
{
    return convert(user, offset, (void *)(uintptr_t)src, length, false);
}

void pml_strata_describe(strata_data_t *out, bool sending, const void *buf, size_t count,
                         struct ompi_datatype_t *datatype, opal_convertor_t *convertor)
{
    opal_convertor_t *mine = ompi_proc_local()->super.proc_convertor;
    void *data;
    size_t len;

    if (pml_strata_block(buf, count, datatype, &data, &len)) {
        *out = (strata_data_t){.kind = STRATA_CONTIGUOUS, .length = len, .u.buffer = data};
        return;
    }
    OBJ_CONSTRUCT(convertor, opal_convertor_t);
    if (sending)
        opal_convertor_copy_and_prepare_for_send(mine, &datatype->super, count, buf, 0, convertor);
    else
        opal_convertor_copy_and_prepare_for_recv(mine, &datatype->super, count, buf, 0, convertor);
    opal_convertor_get_packed_size(convertor, &len);
    *out = (strata_data_t){
        .kind = STRATA_GENERIC, .length = len, .u.convert = {.pack = pack, .unpack = unpack, .user = convertor}};
}

void pml_strata_describe_end(opal_convertor_t *convertor)
{
    OBJ_DESTRUCT(convertor);
}
