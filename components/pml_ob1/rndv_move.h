/* Moving a range of a rendezvous message piece by piece: by gets, by puts, or by asking the peer for puts. */
#ifndef OB1_RNDV_MOVE_H
#define OB1_RNDV_MOVE_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/peer.h>

struct ob1;
struct ob1_piece;
struct ob1_req;
struct ob1_task;

/* One of the three. A task's work.ops are those of its mover. */
struct ob1_mover {
    struct st_work_ops work; /* first; run: ob1_move_run */
    uint32_t cap;            /* ST_BTL_GET or ST_BTL_PUT: what the path must be able to do */
    enum st_btl_use use;     /* of the local memory */
    bool whole;              /* memory that need not be registered goes as one piece */
    /* Starts one piece, whose local memory is registered where it must be. As st_btl_rdma.get. */
    int (*start)(struct ob1_task *t, struct st_btl_endpoint *ep, struct ob1_piece *piece);
    /* A piece, or all that was left, could not be moved. STRATA_ERR_NOMEM: it could not be registered;
     * STRATA_ERR_UNSUPPORTED: the path cannot do this; STRATA_ERR_PEER: the path has failed. */
    void (*failed)(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length, int rc);
    /* Nothing is left to start and nothing in flight: reports it and frees the task. later: since a piece has ended. */
    void (*retire)(struct ob1 *pml, struct ob1_task *t, bool later);
};

int ob1_move_run(void *arg, struct st_work *w);
/* Makes a task and runs it. remote: address of the range at the peer, key: of its memory; NULL: none. */
int ob1_move_begin(struct ob1 *pml, struct ob1_req *req, const struct ob1_mover *mover, uint8_t path, uint64_t offset,
                   uint64_t length, uint64_t remote, const uint8_t *key);
/* A piece in flight has ended: takes up a task that waited for it, or ends it. */
void ob1_move_resume(struct ob1 *pml, struct ob1_task *t);
/* struct ob1_mover.failed of the receiver: what the path no longer can, another protocol fetches; anything else fails
 * the message. */
void ob1_move_again(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length, int rc);

#endif
