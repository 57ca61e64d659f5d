/* Work requests and completions. An op is a work request with its own scatter/gather list; the makers fill in the usual
 * form, and a case changes what it is about before it posts. */
#ifndef VERBS_SUPPORT_OPS_H
#define VERBS_SUPPORT_OPS_H

#include "support/end.h"

struct op {
    struct ibv_send_wr wr;
    struct ibv_sge sge[8];
};

/* Signalled, one element: `len` bytes at `off` of the end's buffer (no element for length 0). */
struct op op_make(const struct end *e, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off, size_t len);
/* The same, of `to`'s buffer at remote_off: RDMA write and read. */
struct op op_rdma(const struct end *e, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off, size_t len,
                  const struct end_address *to, size_t remote_off);
/* Result goes to 8 bytes at `off`. */
struct op op_atomic(const struct end *e, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off,
                    const struct end_address *to, size_t remote_off, uint64_t compare_add, uint64_t swap);
void op_to_ud(struct op *op, struct ibv_ah *ah, uint32_t qpn);
int op_try(const struct end *e, struct op *op); /* what ibv_post_send returned */
void op_post(const struct end *e, struct op *op);

int recv_try(const struct end *e, uint64_t wr_id, struct ibv_sge *sge, int n);
void recv_post(const struct end *e, uint64_t wr_id, size_t off, size_t len);
void srq_post(struct ibv_srq *srq, uint64_t wr_id, const struct memory *m, size_t off, size_t len);

/* The next completion, within the time limit. */
void cq_next(struct ibv_cq *cq, struct ibv_wc *wc);
/* The next completion has this id and status. */
struct ibv_wc cq_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void cq_expect_none(struct ibv_cq *cq, int ms);
/* The next asynchronous event, within the time limit; none: fails the case. */
void event_next(struct ibv_context *ctx, struct ibv_async_event *ev);
void event_expect_none(struct ibv_context *ctx, int ms);

/* A message of len bytes from a to b by the opcode SEND, checked. Proves that the connection works. */
void pair_exchange(struct pair *p, uint32_t seed);

#endif
