/* A short message is built here and copied into the work request: request and list are made once. */
#ifndef IB_BRIEF_H
#define IB_BRIEF_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include "wire.h"

#define IB_MOST_INLINE 1024u
#define IB_USUAL_MOST  64u /* bytes of data; st_copy is inline up to here */

struct ib_brief {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_send_wr *bad;
    uint32_t most;      /* bytes */
    uint32_t most_data; /* bytes from which a message is not sent the shortest way: usual_data, 0 while batching */
    uint32_t usual_data;
    char image[IB_MOST_INLINE] __attribute__((aligned(16)));
};

static inline void ib_brief_init(struct ib_brief *b, uint32_t most)
{
    uint32_t data = most > IB_HEAD + IB_USUAL_HDR ? most - IB_HEAD - IB_USUAL_HDR : 0;

    b->sge = (struct ibv_sge){.addr = (uintptr_t)b->image};
    b->wr = (struct ibv_send_wr){.sg_list = &b->sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    b->most = most;
    b->usual_data = b->most_data = data < IB_USUAL_MOST ? data : IB_USUAL_MOST + 1;
}

#endif
