/* Receiving: posting, delivery, probing. */
#ifndef OB1_RECV_H
#define OB1_RECV_H

#include <strata/sdk/pml.h>
#include "wire.h"

struct ob1;
struct ob1_comm;
struct ob1_cpeer;
struct ob1_msg;
struct ob1_posted;
struct ob1_req;
struct ob1_stream;

/* recv_deliver.c, recv_slow.c */
void ob1_deliver(void *arg, const struct st_frag *frag);
void ob1_deliver_slow(struct ob1 *pml, const struct st_frag *frag);
void ob1_deliver_unexpected(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p, const struct st_frag *frag);
/* The whole eager message is here and matches: unpacks, with truncation. */
void ob1_finish_eager(struct ob1 *pml, struct ob1_req *req, const void *data, size_t len, int src, int tag);
void ob1_deliver_held(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p);
void ob1_deliver_msg(struct ob1 *pml, struct ob1_comm *c, struct ob1_msg *msg);
void ob1_recv_begin(struct ob1 *pml, struct ob1_req *req, struct ob1_cpeer *p, const struct ob1_arrival *a,
                    struct ob1_stream *stream);
void ob1_recv_begin_msg(struct ob1 *pml, struct ob1_req *req, struct ob1_msg *msg); /* frees msg */

/* Ends a posted receive, which no message has matched, with rc. */
void ob1_recv_withdraw(struct ob1 *pml, struct ob1_posted *posted, int rc);

/* recv.c */
int ob1_recv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);
int ob1_recv_locked(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);
int ob1_irecv(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
int ob1_irecv_locked(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
int ob1_imrecv(strata_message_t *msg, const struct st_pml_recv *a, strata_request_t **req);
int ob1_recv_start(struct ob1 *pml, struct ob1_req *req);
/* The error of a source that has failed, from which no further message comes; else, and for any source, STRATA_OK. */
int ob1_dead_source(const strata_comm_t *comm, int src);

/* batch_recv.c */
void ob1_on_batch(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);

/* probe.c */
int ob1_iprobe(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg, strata_status_t *status);

#endif
