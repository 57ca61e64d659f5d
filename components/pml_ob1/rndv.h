/* Rendezvous: the receiver plans, by get, put or fragments. */
#ifndef OB1_RNDV_H
#define OB1_RNDV_H

#include <strata/sdk/pml.h>
#include "wire.h"

struct ob1;
struct ob1_peer;
struct ob1_piece;
struct ob1_req;

/* rendezvous: stripe.c, rndv_get.c, rndv_put.c, pipeline.c, rndv.c */
void ob1_rndv_begin(struct ob1 *pml, struct ob1_req *req, const struct ob1_arrival *a);
void ob1_fetch(struct ob1 *pml, struct ob1_req *req, uint64_t offset, uint64_t length);
void ob1_fetch_again(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
int ob1_get_begin(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
int ob1_put_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
int ob1_pipeline_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
void ob1_on_put(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
void ob1_on_cts(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
void ob1_on_data(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
void ob1_on_fin(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
void ob1_on_ack(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
/* The send that a receiver's request is about, the range checked; NULL: there is none, or it has failed, and the
 * receiver is told so. */
struct ob1_req *ob1_request_to(struct ob1 *pml, const struct st_frag *frag, const struct wire_request *h);
/* Answers a receiver's request that is not served. */
void ob1_request_refuse(struct ob1 *pml, const struct st_frag *frag, const struct wire_request *h, int status);
/* The sender has put `bytes` from the start of the piece. The rest: STRATA_ERR_AGAIN: its path has failed;
 * STRATA_ERR_UNSUPPORTED: it cannot put any more; STRATA_ERR_NOMEM: it cannot put this. Other errors fail the message.
 */
void ob1_put_answered(struct ob1 *pml, struct ob1_piece *piece, int status, uint64_t bytes);

#endif
