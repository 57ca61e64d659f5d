/* Rendezvous by get: the receiver pulls, a piece at a time, and reports to the sender when its range is done. */
#include "control.h"
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "rndv_move.h"
#include "task.h"
#include "wire.h"

/* A get that ended later than it was begun is reported together with others. */
static void ob1_rndv_get_retire(struct ob1 *pml, struct ob1_task *t, bool later)
{
    struct ob1_req *req = t->req;
    uint8_t path = t->work.path;

    if (t->moved && later && !req->failed)
        ob1_fin_soon(pml, req, path, t->moved);
    else if (t->moved)
        ob1_control_answer(pml, req, path, t->moved, STRATA_OK);
    req->done += t->moved;
    if (req->failed)
        ob1_control_answer(pml, req, path, 0, req->head.status.error);
    ob1_task_free(pml, t);
}

static int ob1_rndv_get_start(struct ob1_task *t, struct st_btl_endpoint *ep, struct ob1_piece *piece)
{
    return ep->btl->rdma->get(ep, (char *)t->req->data.u.buffer + piece->offset, t->remote + (piece->offset - t->base),
                              t->key, (size_t)piece->length, piece->registered ? &piece->reg : NULL, &piece->op);
}

static const struct ob1_mover getting = {.work = {ST_AM_PML, ob1_move_run, ob1_task_drop},
                                         .cap = ST_BTL_GET,
                                         .use = ST_BTL_ANY_USE,
                                         .start = ob1_rndv_get_start,
                                         .failed = ob1_move_again,
                                         .retire = ob1_rndv_get_retire};

int ob1_get_begin(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length)
{
    return ob1_move_begin(pml, req, &getting, path, offset, length, req->address + offset, req->key);
}
