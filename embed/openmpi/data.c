/* Data with holes, through Open MPI's convertor. */
#include "data.h"

#include <stdlib.h>
#include <string.h>

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

static void prepare(struct pml_strata_convert *m, const opal_convertor_t *like, size_t element, bool packing)
{
    opal_convertor_t *mine = ompi_proc_local()->super.proc_convertor;
    ptrdiff_t extent;
    char *at;

    opal_datatype_type_extent(like->pDesc, &extent);
    at = (char *)like->pBaseBuf + (ptrdiff_t)element * extent;
    m->n_rest = 0;
    OBJ_CONSTRUCT(&m->convertor, opal_convertor_t);
    if (packing)
        opal_convertor_copy_and_prepare_for_send(mine, like->pDesc, like->count - element, at, 0, &m->convertor);
    else
        opal_convertor_copy_and_prepare_for_recv(mine, like->pDesc, like->count - element, at, 0, &m->convertor);
}

static size_t take_rest(struct pml_strata_convert *m, char *bytes, size_t length)
{
    size_t n = m->n_rest < length ? m->n_rest : length;

    memcpy(bytes, m->rest, n);
    memmove(m->rest, m->rest + n, m->n_rest - n);
    m->n_rest = (uint8_t)(m->n_rest - n);
    return n;
}

/* Packs the next basic element into the empty `rest`. Its length is the smallest room in which the convertor packs
 * anything. 0: there is none. */
static ptrdiff_t pack_element(struct pml_strata_convert *m)
{
    ptrdiff_t n = 0;

    for (size_t room = 1; n == 0 && room <= sizeof m->rest; room++)
        n = advance(&m->convertor, m->rest, room, true);
    m->n_rest = n > 0 ? (uint8_t)n : 0;
    return n;
}

/* Packs the next `length` bytes, fewer only at the end of the data. The convertor never stops within a basic element,
 * parts of messages do: what such an element has beyond the part is kept. */
static ptrdiff_t pack_next(struct pml_strata_convert *m, char *bytes, size_t length)
{
    size_t done = take_rest(m, bytes, length);

    while (done < length) {
        ptrdiff_t n = advance(&m->convertor, bytes + done, length - done, true);
        if (n == 0 && (n = pack_element(m)) > 0)
            n = (ptrdiff_t)take_rest(m, bytes + done, length - done);
        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ptrdiff_t)done;
}

/* Moves a new convertor on by less than an element. That of a receiver is given what is there already. */
static ptrdiff_t skip(struct pml_strata_convert *m, const opal_convertor_t *like, size_t element, size_t length,
                      bool packing)
{
    char *bytes = malloc(length);
    struct pml_strata_convert reader;
    ptrdiff_t rc;

    if (!bytes)
        return STRATA_ERR_NOMEM;
    if (packing) {
        rc = pack_next(m, bytes, length);
    } else {
        prepare(&reader, like, element, true);
        rc = pack_next(&reader, bytes, length);
        OBJ_DESTRUCT(&reader.convertor);
        if (rc == (ptrdiff_t)length)
            rc = advance(&m->convertor, bytes, length, false);
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
    struct pml_strata_convert m;
    size_t size, element;
    ptrdiff_t rc = STRATA_OK;

    opal_datatype_type_size(like->pDesc, &size);
    if (size == 0 || offset / size >= like->count)
        return 0;
    element = offset / size;
    prepare(&m, like, element, packing);
    if (offset % size)
        rc = skip(&m, like, element, offset % size, packing);
    if (rc == STRATA_OK)
        rc = packing ? pack_next(&m, bytes, length) : advance(&m.convertor, bytes, length, false);
    OBJ_DESTRUCT(&m.convertor);
    return rc;
}

static ptrdiff_t pack(void *user, size_t offset, void *dst, size_t length)
{
    struct pml_strata_convert *m = user;

    return offset + m->n_rest == m->convertor.bConverted ? pack_next(m, dst, length)
                                                         : jump(&m->convertor, offset, dst, length, true);
}

static ptrdiff_t unpack(void *user, size_t offset, const void *src, size_t length)
{
    struct pml_strata_convert *m = user;
    void *bytes = (void *)(uintptr_t)src;

    return offset == m->convertor.bConverted ? advance(&m->convertor, bytes, length, false)
                                             : jump(&m->convertor, offset, bytes, length, false);
}

void pml_strata_describe(strata_data_t *out, bool sending, const void *buf, size_t count,
                         struct ompi_datatype_t *datatype, struct pml_strata_convert *m)
{
    opal_convertor_t *mine = ompi_proc_local()->super.proc_convertor;
    void *data;
    size_t len;

    if (pml_strata_block(buf, count, datatype, &data, &len)) {
        *out = (strata_data_t){.kind = STRATA_CONTIGUOUS, .length = len, .u.buffer = data};
        return;
    }
    m->n_rest = 0;
    OBJ_CONSTRUCT(&m->convertor, opal_convertor_t);
    if (sending)
        opal_convertor_copy_and_prepare_for_send(mine, &datatype->super, count, buf, 0, &m->convertor);
    else
        opal_convertor_copy_and_prepare_for_recv(mine, &datatype->super, count, buf, 0, &m->convertor);
    opal_convertor_get_packed_size(&m->convertor, &len);
    *out = (strata_data_t){
        .kind = STRATA_GENERIC, .length = len, .u.convert = {.pack = pack, .unpack = unpack, .user = m}};
}

void pml_strata_describe_end(struct pml_strata_convert *m)
{
    OBJ_DESTRUCT(&m->convertor);
}
