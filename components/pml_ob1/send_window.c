/* Sends a part of a message's data, of whatever kind it is. */
#include "ob1.h"
#include "send.h"

int ob1_send_window(struct ob1 *pml, struct st_btl_endpoint *ep, const void *hdr, uint32_t hdr_len,
                    const strata_data_t *data, uint64_t offset, uint32_t len)
{
    struct st_payload window = {data, (size_t)offset, len};

    (void)pml;
    if (ST_LIKELY(data->kind == STRATA_CONTIGUOUS))
        return ep->btl->ops->send(ep, ST_AM_PML, hdr, hdr_len, (const char *)data->u.buffer + offset, len);
    return ep->btl->ops->send_payload(ep, ST_AM_PML, hdr, hdr_len, &window);
}
