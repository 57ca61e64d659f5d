/* Tasks and pieces of rendezvous transfers. A task is a range of one message on one path; pieces are its operations in
 * flight. A task lives until nothing is left to start and nothing in flight, also when its request has failed: the
 * user's memory is not let go before. */
#include <strata/sdk/btl_rdma.h>
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "task.h"

struct ob1_task *ob1_task_make(struct ob1 *pml, struct ob1_req *req, uint8_t path, const struct st_work_ops *ops,
                               bool rdma, uint64_t offset, uint64_t length)
{
    struct ob1_task *t = st_slab_get(&pml->tasks);

    if (!t)
        return NULL;
    t->work = (struct st_work){.ops = ops, .path = path, .rdma = rdma};
    t->peer = req->peer;
    t->req = req;
    t->base = t->next = offset;
    t->end = offset + length;
    t->moved = 0;
    t->answer = t->remote = 0;
    t->fail_at = UINT64_MAX;
    t->in_flight = 0;
    t->parked = false;
    t->left_by = STRATA_OK;
    req->tasks++;
    return t;
}

/* Lets go of the request as well, which may end it. */
void ob1_task_free(struct ob1 *pml, struct ob1_task *t)
{
    struct ob1_req *req = t->req;

    st_slab_put(&pml->tasks, t);
    req->tasks--;
    ob1_req_try_end(pml, req);
}

void ob1_task_go(struct ob1 *pml, struct ob1_task *t)
{
    struct ob1_peer *peer = t->peer;

    t->parked = false;
    if (!peer->shared->bml || t->work.ops->run(pml, &t->work) != STRATA_OK)
        st_worker_queue(pml->head.worker, peer->shared, ST_WORK_BULK, &t->work);
}

/* Pieces in flight may still end: a task that has been started sees that its request has failed, and retires. */
void ob1_task_drop(void *arg, struct st_work *w, int rc)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);

    if (!t->req->failed)
        ob1_req_fail(pml, t->req, rc);
    if (t->peer->shared->bml)
        (void)w->ops->run(pml, w);
    else
        ob1_task_free(pml, t);
}

struct ob1_piece *ob1_piece_make(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length)
{
    struct ob1_piece *piece = st_slab_get(&pml->pieces);

    if (!piece)
        return NULL;
    piece->pml = pml;
    piece->task = t;
    piece->offset = offset;
    piece->length = length;
    piece->id = 0;
    piece->registered = false;
    return piece;
}

int ob1_piece_register(struct ob1_piece *piece, struct st_btl *btl, enum st_btl_use use)
{
    const struct ob1_req *req = piece->task->req;
    uint64_t at = piece->offset, length = piece->length, whole;
    int rc;

    if (!(btl->caps & ST_BTL_NEEDS_REG))
        return STRATA_OK;
    /* Where registrations are kept one for the whole message serves its pieces, and the next message from there. */
    whole = req->head.kind == OB1_SEND ? req->data.length : req->expect;
    if ((btl->caps & ST_BTL_REG_KEPT) && whole <= btl->rdma_pipeline) {
        at = 0;
        length = whole;
    }
    rc = btl->rdma->reg(btl, (char *)req->data.u.buffer + at, (size_t)length, use, &piece->reg);
    if (rc == STRATA_OK) {
        piece->registered = true;
        piece->btl = btl;
    }
    return rc;
}

void ob1_piece_free(struct ob1 *pml, struct ob1_piece *piece)
{
    if (piece->registered)
        piece->btl->rdma->dereg(piece->btl, &piece->reg);
    if (piece->id)
        st_wire_id_put(&pml->ids, piece->id);
    st_slab_put(&pml->pieces, piece);
}
