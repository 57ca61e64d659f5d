/* Sending: messages, control messages, the cells that long ones lie in, and the grant of a ring. */
#ifndef SM_SEND_H
#define SM_SEND_H

#include "peer.h"

/* Control messages: payload of words with SM_WORD_CTL. */
enum sm_ctl {
    SM_CTL_GRANTS, /* the sender of this has changed the receiver's grant */
    SM_CTL_COOP    /* struct sm_coop_call: come and help to copy */
};

/* send.c */
int sm_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len);
int sm_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload);
/* Whether a short message could go now: STRATA_OK; STRATA_ERR_AGAIN; STRATA_ERR_PEER. By the queue, others may be
 * faster. */
int sm_send_room(struct sm_peer *p);
int sm_send_ctl(struct sm_peer *p, enum sm_ctl kind, const void *what, uint32_t len);

/* cells.c */
int sm_cells_ready(struct sm_module *m); /* at least one cell: STRATA_ERR_NOMEM if not */
/* A free cell of mine and its index; NULL: there is none. */
struct sm_cell *sm_cell_get(struct sm_module *m, uint32_t *index);
bool sm_cells_idle(struct sm_module *m);
bool sm_cells_out(const struct sm_module *m, int rank); /* some are on their way to rank */
void sm_cells_recover(struct sm_module *m, int rank);   /* takes those back: rank has ended and reads no more */

/* grant.c. The grant word reads g, not p->hot.word. STRATA_OK: see p->hot.word; STRATA_ERR_AGAIN. */
int sm_grant_changed(struct sm_peer *p, uint32_t g);
/* Before a send, when the grant word g names no ring in use here: the same, or STRATA_ERR_PEER. */
int sm_grant_look(struct sm_peer *p, uint32_t g);

/* enter.c */
/* Gets an entry in the peer's directory: what is needed to send to it. STRATA_ERR_UNREACHABLE: see why; a full
 * directory has had timeout_ms to get room. */
int sm_enter(struct sm_peer *p, int64_t timeout_ms, char *why, size_t why_size);
/* Gives ring and entry back to the peer. What was sent still arrives. */
void sm_leave(struct sm_peer *p);

#endif
