/* Data with holes, through Open MPI's convertor. */
#include "data.h"

/* The convertor stops at its own boundaries, so that one call may do less than was asked. */
static ptrdiff_t convert(opal_convertor_t *c, size_t offset, void *bytes, size_t length, bool packing)
{
    size_t done = 0;

    if (opal_convertor_set_position(c, &offset) < 0)
        return STRATA_ERR_ARG;
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
