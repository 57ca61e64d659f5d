/* Tasks and pieces: ranges of a rendezvous message, and their operations in flight. */
#ifndef OB1_TASK_H
#define OB1_TASK_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/peer.h>

struct ob1;
struct ob1_peer;
struct ob1_req;

/* A range of a rendezvous message on one path (task.c). */
struct ob1_task {
    struct st_work work;
    struct ob1_peer *peer;
    struct ob1_req *req;
    uint64_t base;      /* where the range begins in the message */
    uint64_t next, end; /* of it, not yet started */
    uint64_t moved;     /* bytes */
    uint64_t answer;    /* the peer's name for where it goes */
    uint64_t remote;    /* address of `base` there */
    uint64_t fail_at;   /* put: first byte that is left to another protocol, for the reason `left_by` */
    uint32_t in_flight; /* pieces */
    bool parked;        /* waits for a piece, not queued */
    int left_by;        /* put: STRATA_ERR_AGAIN: its path failed; _UNSUPPORTED, _NOMEM: as of ob1_put_answered */
    uint8_t key[ST_BTL_KEY_MAX];
};

struct ob1_piece {
    struct st_btl_op op;
    struct ob1 *pml;
    struct ob1_task *task;
    uint64_t offset, length;
    uint64_t id; /* of a put that was asked for */
    bool registered;
    struct st_btl *btl;
    struct st_btl_reg reg;
};

/* task.c */
struct ob1_task *ob1_task_make(struct ob1 *pml, struct ob1_req *req, uint8_t path, const struct st_work_ops *ops,
                               bool rdma, uint64_t offset, uint64_t length);
void ob1_task_drop(void *arg, struct st_work *w, int rc); /* st_work_ops.drop of tasks */
void ob1_task_free(struct ob1 *pml, struct ob1_task *t);
void ob1_task_go(struct ob1 *pml, struct ob1_task *t); /* runs it, queues what is left */
struct ob1_piece *ob1_piece_make(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length);
void ob1_piece_free(struct ob1 *pml, struct ob1_piece *piece);
int ob1_piece_register(struct ob1_piece *piece, struct st_btl *btl, enum st_btl_use use);

#endif
