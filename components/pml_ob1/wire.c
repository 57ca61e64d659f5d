/* Checks of what arrives. */
#include <strata/sdk/btl_rdma.h>
#include "wire.h"

int wire_parse(const struct st_frag *frag, struct ob1_arrival *a)
{
    union {
        struct wire_match match;
        struct wire_sync sync;
        struct wire_stream stream;
        struct wire_rndv rndv;
    } h;
    size_t n = frag->hdr_len < sizeof(h) ? frag->hdr_len : sizeof(h);

    if (n < sizeof(h.match))
        return STRATA_ERR_PROTOCOL;
    memcpy(&h, frag->hdr, n); /* first, so that a peer cannot change it between check and use */
    *a = (struct ob1_arrival){.type = h.match.type,
                              .flags = h.match.flags,
                              .seq = h.match.seq,
                              .context = h.match.context,
                              .tag = h.match.tag,
                              .src = h.match.src,
                              .job_rank = frag->rank,
                              .length = frag->len,
                              .data = frag->data,
                              .len = frag->len,
                              .btl = frag->btl};
    if (a->tag == STRATA_ANY_TAG || a->src < 0)
        return STRATA_ERR_PROTOCOL;
    switch (h.match.type) {
    case OB1_EAGER:
        return STRATA_OK;
    case OB1_EAGER_SYNC:
        if (n < sizeof(h.sync))
            return STRATA_ERR_PROTOCOL;
        a->id = h.sync.id;
        return STRATA_OK;
    case OB1_STREAM:
        if (n < sizeof(h.stream) || h.stream.total > OB1_STREAM_MAX || frag->len > h.stream.total)
            return STRATA_ERR_PROTOCOL;
        a->stream = h.stream.stream;
        a->length = h.stream.total;
        return STRATA_OK;
    case OB1_RNDV:
        if (n < sizeof(h.rndv) || h.rndv.length > SIZE_MAX / 2)
            return STRATA_ERR_PROTOCOL;
        if ((a->flags & OB1_F_KEY) && frag->len < ST_BTL_KEY_MAX)
            return STRATA_ERR_PROTOCOL;
        a->length = h.rndv.length;
        a->id = h.rndv.id;
        a->address = h.rndv.address;
        return STRATA_OK;
    default:
        return STRATA_ERR_PROTOCOL;
    }
}
