/* Control messages, and reports that wait for the end of a round of progress. */
#ifndef OB1_CONTROL_H
#define OB1_CONTROL_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/peer.h>
#include "wire.h"

struct ob1;
struct ob1_peer;
struct ob1_req;

/* Ranges that were got in this round of progress and are not yet reported: of one peer, by one path (fin.c). */
#define OB1_FINS 8u
struct ob1_fins {
    struct ob1_peer *peer;
    uint32_t n;
    uint8_t path;
    uint8_t found; /* by the first; of the others nothing is said */
    struct wire_fin fin[OB1_FINS];
};

#define OB1_CONTROL_DATA ((OB1_FINS - 1) * sizeof(struct wire_fin))
_Static_assert(OB1_CONTROL_DATA >= ST_BTL_KEY_MAX && OB1_CONTROL_DATA <= UINT8_MAX, "keys and reports fit");

/* A control message that waits. */
struct ob1_control {
    struct st_work work;
    struct ob1_peer *peer;
    uint8_t hdr_len, len;
    uint8_t hdr[ST_BTL_HDR_MAX];
    uint8_t data[OB1_CONTROL_DATA];
};

/* control.c */
void ob1_control(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, const void *hdr, uint32_t hdr_len,
                 const void *data, uint32_t len);
void ob1_control_fin(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, enum ob1_type type, uint64_t id,
                     uint64_t bytes, int status);
/* OB1_FIN of a receive to the sender of its message. */
void ob1_control_answer(struct ob1 *pml, const struct ob1_req *req, uint8_t path, uint64_t bytes, int status);

/* fin.c */
void ob1_fin_soon(struct ob1 *pml, const struct ob1_req *req, uint8_t path, uint64_t bytes);
void ob1_fins_send(struct ob1 *pml);
int ob1_attend(void *arg); /* the same, as struct st_client.attend */

#endif
