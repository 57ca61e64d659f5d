/* Where the next message of a ring is built, and where it goes. */
#ifndef IB_RING_AIM_H
#define IB_RING_AIM_H

#include "module.h"

static inline char *ib_ring_image_end(struct ib_module *m)
{
    return m->eager.image + sizeof m->eager.image;
}

/* The next slot ends at the remote address `end`. */
static inline void ib_ring_aim(struct ib_ring_out *out, uint64_t end)
{
    struct ib_module *m = ib_module_of(out->peer);

    out->wr.wr.rdma.remote_addr = end + out->size - IB_LINE;
    out->wr.send_flags = IBV_SEND_INLINE;
    out->sge.addr = (uintptr_t)ib_ring_image_end(m) - IB_LINE;
    out->sge.length = IB_LINE;
}

#endif
