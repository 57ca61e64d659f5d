/* Sends of the layer above, and whether there is room for one. */
#ifndef IB_SEND_H
#define IB_SEND_H

#include <stdbool.h>
#include <strata/sdk/btl_hints.h>

struct ib_peer;

int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len);
/* As ib_send, by send/receive also where the peer has granted a ring. */
int ib_send_by_queue(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                     uint32_t len);
int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload);
int ib_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len, struct st_btl_op *op);
void ib_batch(struct st_btl *btl, bool on);
/* Why nothing can be sent now; begins the connection on the first call. */
int ib_send_not_now(struct ib_peer *p);

#endif
