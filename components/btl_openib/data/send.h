/* Messages of the layer above: built in one place and copied into the work request, batched, or taken by the device
 * from where they are. */
#ifndef IB_SEND_H
#define IB_SEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/rcache.h>
#include <strata/sdk/slab.h>
#include "eager_rdma/slot.h"
#include "queues/queue.h"
#include "wire.h"

struct ib_module;
struct ib_peer;
struct ib_qp;

#define IB_MOST_INLINE 1024u
#define IB_USUAL_MOST  64u /* bytes of data; st_copy is inline up to here */

struct ib_brief {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_send_wr *bad;
    uint32_t most;      /* bytes */
    uint32_t most_data; /* bytes from which a message is not sent the shortest way: usual_data, 0 while batching */
    uint32_t usual_data;
    uint32_t most_line, usual_line; /* the same by a ring of eager RDMA, in one cache line */
    struct ibv_send_wr notice;      /* a put with notice of such a length, but for what differs */
    struct ibv_sge notice_sge;
    char image[IB_MOST_INLINE] __attribute__((aligned(16)));
};

static inline void ib_brief_init(struct ib_brief *b, uint32_t most)
{
    uint32_t data = most > IB_HEAD + IB_USUAL_HDR ? most - IB_HEAD - IB_USUAL_HDR : 0;

    b->sge = (struct ibv_sge){.addr = (uintptr_t)b->image};
    b->wr = (struct ibv_send_wr){.sg_list = &b->sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    b->notice = (struct ibv_send_wr){
        .sg_list = &b->notice_sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_INLINE};
    b->most = most;
    b->usual_line = b->most_line = most >= IB_LINE ? IB_LINE_DATA + 1 : 0;
    b->usual_data = b->most_data = data < IB_USUAL_MOST ? data : IB_USUAL_MOST + 1;
}

/* ---- wr_batch.c: requests that wait for each other, all for one queue pair; they count as posted everywhere ---- */
#define IB_BATCHED 8u /* requests that one call hands over */

struct ib_batch {
    struct ib_qp *q; /* that they are for */
    uint32_t n;
    bool on; /* between batch(true) and batch(false) of the module */
    struct ibv_send_wr wr[IB_BATCHED];
    struct ibv_sge sge[IB_BATCHED][2];
};

/* False: the request has to be posted by itself, now. */
bool ib_batch_add(struct ib_module *m, struct ib_qp *q, const struct ibv_send_wr *wr);
/* Posts the waiting requests. Other requests to the same queue pair come behind this. */
void ib_batch_post(struct ib_module *m);
/* Drops requests for a queue pair that goes away. */
void ib_batch_drop(struct ib_module *m, const struct ib_qp *q);

/* ---- zcopy.c: messages whose data the device takes from the memory of the caller ---- */
#define IB_SEEN 256u

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
struct st_btl_op *ib_zcopy_free(struct ib_module *m, struct ib_zcopy *z); /* its operation, to be ended */

/* ---- send.c ---- */
int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len);
/* st_btl_ops.send of a module with eager RDMA: by the peer's ring, if there is one with room, else as ib_send. */
int ib_send_eager(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len);
int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload);
int ib_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len, struct st_btl_op *op);
void ib_batch(struct st_btl *btl, bool on);
/* Why nothing can be sent now; begins the connection on the first call. */
int ib_send_not_now(struct ib_peer *p);

#endif
