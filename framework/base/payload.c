/* Moving bytes between a packed stream and the memory it describes: contiguous, iovec, or the caller's conversion. */
#include <strata/sdk/copy.h>
#include <strata/sdk/payload.h>

static int payload_convert_out(const strata_convert_t *c, size_t offset, char *dst, size_t length)
{
    while (length > 0) {
        ptrdiff_t n = c->pack(c->user, offset, dst, length);
        if (n < 0)
            return (int)n;
        if (n == 0 || (size_t)n > length) /* would loop for ever, or has written past the end */
            return STRATA_ERR_ARG;
        offset += (size_t)n;
        dst += n;
        length -= (size_t)n;
    }
    return STRATA_OK;
}

static int payload_convert_in(const strata_convert_t *c, size_t offset, const char *src, size_t length)
{
    while (length > 0) {
        ptrdiff_t n = c->unpack(c->user, offset, src, length);
        if (n < 0)
            return (int)n;
        if (n == 0 || (size_t)n > length)
            return STRATA_ERR_ARG;
        offset += (size_t)n;
        src += n;
        length -= (size_t)n;
    }
    return STRATA_OK;
}

/* Walks the part of an iovec list that covers [offset, offset + length) of its stream; `out`: from the list to flat,
 * else from flat to the list. */
static inline __attribute__((always_inline)) int payload_walk(const strata_data_t *data, size_t offset, char *flat,
                                                              size_t length, bool out)
{
    for (size_t i = 0; i < data->u.iov.n && length > 0; i++) {
        const struct strata_iovec *v = &data->u.iov.v[i];
        if (offset >= v->length) {
            offset -= v->length;
            continue;
        }
        size_t n = v->length - offset < length ? v->length - offset : length;
        if (out)
            st_copy_long(flat, (const char *)v->base + offset, n);
        else
            st_copy_long((char *)v->base + offset, flat, n);
        flat += n;
        length -= n;
        offset = 0;
    }
    return length == 0 ? STRATA_OK : STRATA_ERR_ARG;
}

static bool payload_inside(const strata_data_t *data, size_t offset, size_t length)
{
    return offset <= data->length && length <= data->length - offset;
}

int st_payload_gather(const struct st_payload *p, void *dst)
{
    const strata_data_t *data = p->data;
    if (p->length == 0)
        return STRATA_OK;
    if (!payload_inside(data, p->offset, p->length))
        return STRATA_ERR_ARG;
    switch (data->kind) {
    case STRATA_CONTIGUOUS:
        st_copy_long(dst, (const char *)data->u.buffer + p->offset, p->length);
        return STRATA_OK;
    case STRATA_IOVEC:
        return payload_walk(data, p->offset, dst, p->length, true);
    case STRATA_GENERIC:
        return payload_convert_out(&data->u.convert, p->offset, dst, p->length);
    }
    return STRATA_ERR_ARG;
}

int st_data_scatter(const strata_data_t *data, size_t offset, const void *src, size_t length)
{
    if (length == 0)
        return STRATA_OK;
    if (!payload_inside(data, offset, length))
        return STRATA_ERR_ARG;
    switch (data->kind) {
    case STRATA_CONTIGUOUS:
        st_copy_long((char *)data->u.buffer + offset, src, length);
        return STRATA_OK;
    case STRATA_IOVEC: /* the flat side is only read */
        return payload_walk(data, offset, (char *)(uintptr_t)src, length, false);
    case STRATA_GENERIC:
        return payload_convert_in(&data->u.convert, offset, src, length);
    }
    return STRATA_ERR_ARG;
}

static int payload_check_iovec(const strata_data_t *data)
{
    if (data->u.iov.n > 0 && data->u.iov.v == NULL)
        return STRATA_ERR_ARG;
    size_t sum = 0;
    for (size_t i = 0; i < data->u.iov.n; i++) {
        const struct strata_iovec *v = &data->u.iov.v[i];
        if ((v->base == NULL && v->length > 0) || __builtin_add_overflow(sum, v->length, &sum))
            return STRATA_ERR_ARG;
    }
    return sum == data->length ? STRATA_OK : STRATA_ERR_ARG;
}

int st_data_check(const strata_data_t *data)
{
    if (data == NULL)
        return STRATA_ERR_ARG;
    switch (data->kind) {
    case STRATA_CONTIGUOUS:
        return data->u.buffer == NULL && data->length > 0 ? STRATA_ERR_ARG : STRATA_OK;
    case STRATA_IOVEC:
        return payload_check_iovec(data);
    case STRATA_GENERIC:
        /* A send needs pack, a receive unpack: at least one must be there, the PML checks by direction. */
        return data->u.convert.pack == NULL && data->u.convert.unpack == NULL ? STRATA_ERR_ARG : STRATA_OK;
    }
    return STRATA_ERR_ARG;
}
