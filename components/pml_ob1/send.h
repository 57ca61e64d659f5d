/* Sending: at once, queued, buffered, several messages together. */
#ifndef OB1_SEND_H
#define OB1_SEND_H

#include <strata/sdk/pml.h>
#include "send_way.h"

struct ob1;
struct ob1_comm;
struct ob1_peer;
struct ob1_req;

/* send_fast.c, send.c */
int ob1_send(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode);
int ob1_isend(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
int ob1_send_locked(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode);
int ob1_isend_locked(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
/* The answer of an attempt to send for which the transport had no room: the message is queued, not tried once more. */
#define OB1_REFUSED 2
int ob1_send_slow(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode, bool refused);
int ob1_isend_slow(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req, bool refused);
int ob1_send_start(struct ob1 *pml, struct ob1_req *req, bool refused, const struct ob1_way *way);
int ob1_send_buffered_start(struct ob1 *pml, struct ob1_req *req); /* a persistent one of buffered mode */
void ob1_send_orphan(struct ob1_comm *c);

/* A request's first fragment: STRATA_OK or STRATA_ERR_AGAIN. */
int ob1_first_run(struct ob1 *pml, struct ob1_req *req);
void ob1_first_queue(struct ob1 *pml, struct ob1_req *req);
int ob1_firsts(void *arg, struct st_peer *shared, uint32_t *busy); /* struct st_client.firsts */

void ob1_send_moved(struct ob1 *pml, struct ob1_req *req, uint64_t bytes); /* sender: so much is done with */

/* coalesce.c */
/* Whether a message that has been started should wait for others to go along with. */
bool ob1_holds(const struct ob1_req *req);
/* Sends the messages that wait and may go together, if the path is not busy, which it sets on STRATA_ERR_AGAIN. Returns
 * how many went. */
int ob1_coalesce(struct ob1 *pml, struct ob1_peer *peer, uint32_t *busy);

#endif
