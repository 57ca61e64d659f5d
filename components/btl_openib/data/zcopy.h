/* Messages whose data the device takes from the caller's memory. */
#ifndef IB_ZCOPY_H
#define IB_ZCOPY_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/rcache.h>
#include <strata/sdk/slab.h>
#include "queues/buffer.h"

#define IB_SEEN 256u

struct ib_module;

struct ib_zcopy {
    struct ib_buffer *head; /* registered, for what is in front of the data */
    struct st_rcache_entry *memory;
    struct st_btl_op *op;
};

struct ib_zcopies {
    struct st_slab slab;
    struct ib_pool heads;
    uint32_t seen[IB_SEEN]; /* pages that messages were sent from lately */
};

int ib_zcopy_open(struct ib_module *m);
/* NULL: the message must be copied. */
struct ib_zcopy *ib_zcopy_make(struct ib_module *m, const void *data, uint32_t len, struct st_btl_op *op);
void ib_zcopy_free(struct ib_module *m, struct ib_zcopy *z);
void ib_zcopy_ended(struct ib_module *m, struct ib_zcopy *z, int rc);

#endif
