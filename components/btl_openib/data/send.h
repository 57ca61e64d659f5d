/* Sends of the layer above, and whether there is room for one. */
#ifndef IB_SEND_H
#define IB_SEND_H

#include <stdbool.h>
#include <strata/sdk/btl_hints.h>

struct ib_peer;

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
