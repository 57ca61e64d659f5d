/* Put, get, and put with notice. */
#ifndef IB_RDMA_H
#define IB_RDMA_H

#include <arpa/inet.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/list.h>
#include <strata/sdk/slab.h>
#include "peer/qp.h"

/* A put or get that is longer than one work request may be. */
struct ib_rdma {
    struct st_node node; /* in the module's list until all of it is posted */
    struct ib_peer *peer;
    struct st_btl_op *op;
    uint64_t local, remote, left;
    uint32_t lkey, rkey;
    bool read;
    bool notifies; /* by its last piece, which is a message */
    uint32_t word; /* that the peer gets then */
};

/* A read or write of memory at `remote`; sge NULL: of no bytes. */
static inline struct ibv_send_wr ib_rdma_wr(const struct ib_qp *q, bool read, struct ibv_sge *sge, uint64_t remote,
                                            uint32_t rkey, bool signal)
{
    return (struct ibv_send_wr){.wr_id = ib_wr_id(q),
                                .sg_list = sge,
                                .num_sge = sge != NULL,
                                .opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                .send_flags = signal ? IBV_SEND_SIGNALED : 0,
                                .wr.rdma = {.remote_addr = remote, .rkey = rkey}};
}
/* A write becomes a put with notice. */
static inline void ib_rdma_notify(struct ibv_send_wr *wr, uint32_t word)
{
    wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr->imm_data = htonl(word);
}
#define IB_RDMA_CONTROL 2u /* work requests kept back */

struct ib_rdmas {
    struct st_slab slab;
    struct st_node waiting; /* struct ib_rdma not yet posted to the end */
};

/* ---- rdma.c ---- */
int ib_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);

/* ---- put_notify.c ---- */
int ib_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                  struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op);

/* ---- rdma_pieces.c: longer than one work request ---- */
int ib_rdmas_open(struct ib_rdmas *r);
int ib_rdma_post(struct ib_qp *q, struct ibv_send_wr *wr, void *what, enum ib_sent_kind kind); /* signalled */
int ib_rdma_begin(const struct ib_rdma *as); /* posts what there is room for */
void ib_rdma_progress(struct ib_module *m);  /* posts more */
void ib_rdma_ended(struct ib_rdma *r, int rc);
void ib_rdma_cancel(struct ib_peer *p); /* what waits, with STRATA_ERR_PEER */
/* Nothing of low priority is in flight to the peer, and nothing waits. */
bool ib_drained(const struct ib_peer *p);

#endif
