/* Put, get, put with notice, and the registration of user memory for them through the cache of the context. */
#ifndef IB_RDMA_H
#define IB_RDMA_H

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/list.h>
#include <strata/sdk/rcache.h>
#include <strata/sdk/slab.h>
#include "peer/peer.h"

struct ib_module;

/* A put or get; in the module's slab where it is longer than one work request may be. */
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
/* The request for the next `len` bytes from `at` on; the last one of a put with notice brings the notice. */
static inline struct ibv_send_wr ib_rdma_piece(const struct ib_qp *q, const struct ib_rdma *r, uint64_t at,
                                               uint32_t len, bool signal, struct ibv_sge *sge)
{
    *sge = (struct ibv_sge){r->local + at, len, r->lkey};
    struct ibv_send_wr wr = ib_rdma_wr(q, r->read, sge, r->remote + at, r->rkey, signal);

    if (r->notifies && at + len == r->left) {
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.imm_data = htonl(r->word);
    }
    return wr;
}
#define IB_RDMA_CONTROL 2u /* work requests kept back */

struct ib_rdmas {
    struct st_slab slab;
    struct st_node waiting; /* struct ib_rdma not yet posted to the end */
};

/* ---- rdma.c ---- */
/* All of a put of len bytes, as the contract's arguments say. */
struct ib_rdma ib_rdma_make(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                            size_t len, const struct st_btl_reg *reg, struct st_btl_op *op);
/* It has begun, or is done. */
void ib_rdma_count(struct ib_module *m, bool read, size_t len);
int ib_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int ib_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                  struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op);

/* ---- rdma_pieces.c: longer than one work request ---- */
int ib_rdmas_open(struct ib_rdmas *r);
int ib_rdma_post(struct ib_qp *q, struct ibv_send_wr *wr, void *what, enum ib_sent_kind kind); /* signalled */
int ib_rdma_begin(const struct ib_rdma *as);                            /* posts what there is room for */
void ib_rdma_progress(struct ib_module *m);                             /* posts more */
struct st_btl_op *ib_rdma_free(struct ib_module *m, struct ib_rdma *r); /* its operation, to be ended */
void ib_rdma_cancel(struct ib_peer *p);                                 /* what waits, with STRATA_ERR_PEER */
/* Nothing of low priority is in flight to the peer, and nothing waits. */
bool ib_drained(const struct ib_peer *p);

/* ---- registration.c ---- */
struct ib_registrar {
    struct st_rcache *cache;        /* the context's */
    struct st_rcache_client client; /* this module in it */
    bool attached;
    bool warned;      /* that memory cannot be registered */
    uint64_t refused; /* ns, time of the first failure since the last success; 0: none */
};

/* The key of registered memory, as it travels. */
struct ib_key {
    uint32_t rkey;
    uint32_t rail; /* of the owner: keys of one device mean nothing to another */
};
_Static_assert(sizeof(struct ib_key) <= ST_BTL_KEY_MAX, "a key fits");
int ib_registrations_open(struct ib_module *m);
void ib_registrations_close(struct ib_module *m); /* undoes them all; nothing may be in flight */
int ib_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
void ib_dereg(struct st_btl *btl, struct st_btl_reg *reg);

#endif
