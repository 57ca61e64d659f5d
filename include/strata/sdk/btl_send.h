/* Sending by a transport, for its clients: parts of messages, whatever kind of data they are of. */
#ifndef STRATA_SDK_BTL_SEND_H
#define STRATA_SDK_BTL_SEND_H

#include <strata/sdk/btl_hints.h>
#include <strata/sdk/hint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends `length` bytes of a message from `offset` on, whatever kind of data it is. Returns as the op
 * `send`, or the error of packing. */
static inline int st_btl_send_part(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                                   const strata_data_t *data, uint64_t offset, uint32_t length)
{
    struct st_payload part = {data, (size_t)offset, length};

    if (ST_LIKELY(data->kind == STRATA_CONTIGUOUS))
        return ep->btl->ops->send(ep, am, hdr, hdr_len, (const char *)data->u.buffer + offset, length);
    return ep->btl->ops->send_payload(ep, am, hdr, hdr_len, &part);
}

/* Same as st_btl_send_part, of a part whose order nobody needs (send_bulk). */
static inline int st_btl_send_bulk_part(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                                        const strata_data_t *data, uint64_t offset, uint32_t length)
{
    struct st_payload part = {data, (size_t)offset, length};

    if (ep->btl->hints->send_bulk)
        return ep->btl->hints->send_bulk(ep, am, hdr, hdr_len, &part);
    return st_btl_send_part(ep, am, hdr, hdr_len, data, offset, length);
}

#ifdef __cplusplus
}
#endif
#endif
