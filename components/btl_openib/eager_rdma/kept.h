/* Messages that clients keep in their slots: docs/design/eager-rdma-kept.md. */
#ifndef IB_KEPT_H
#define IB_KEPT_H

#include <strata/sdk/btl_hints.h>
#include "eager_rdma/eager.h"

/* A message that is being delivered, of any kind but those of one line that are only counted. */
struct ib_taking {
    struct ib_ring_in *ring;
    struct st_btl_kept *kept; /* a client keeps it */
    const char *data;
    uint32_t data_len;
    uint32_t slot, k; /* its first slot, and their number */
    uint32_t len;     /* bytes of header and data */
};

/* Frees k slots of a ring from `slot` on, whose message of len bytes ends at `end`. */
static inline void ib_ring_return(struct ib_ring_in *r, uint32_t slot, char *end, uint32_t len, uint32_t k)
{
    if (r->detect == IB_DETECT_SEAL)
        ib_seal_clear(end, len);
    else
        ib_slots_clear(end, (uint32_t)r->size, k);
    ib_ring_owes(r, ib_ring_free(&r->order, slot, k));
}

bool ib_keep(struct st_btl *btl, const void *data, uint32_t len, struct st_btl_kept *kept); /* of struct st_btl_hints */
void ib_release(struct st_btl *btl, struct st_btl_kept *kept);
/* Ends the keeping of the oldest messages while more slots are held than the bound permits. */
void ib_kept_trim(struct ib_module *m, struct ib_ring_in *r);
void ib_kept_end(struct ib_module *m, struct ib_ring_in *r); /* ends the keeping of all: the ring ends */

#endif
