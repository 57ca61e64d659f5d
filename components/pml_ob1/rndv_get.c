/* Rendezvous by get: the receiver pulls, a piece at a time, and reports to the sender when its range is done. */
#include <strata/sdk/btl_rdma.h>
#include "control.h"
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "task.h"
#include "wire.h"

#define INLINE_BYTES (4u << 20) /* pulled by gets that finish at once before others get their turn */

static void ob1_rndv_get_done(struct st_btl_op *op, int rc);

/* Nothing to start, nothing in flight. What ended later than it was begun is reported with others of its kind. */
static void ob1_rndv_retire(struct ob1 *pml, struct ob1_task *t, bool later)
{
    struct ob1_req *req = t->req;
    uint8_t path = t->work.path;

    if (t->moved && later && !req->failed)
        ob1_fin_soon(pml, t->peer, path, req->sender_id, t->moved);
    else if (t->moved)
        ob1_control_fin(pml, t->peer, path, OB1_FIN, req->sender_id, t->moved, STRATA_OK);
    req->done += t->moved;
    if (req->failed)
        ob1_control_fin(pml, t->peer, path, OB1_FIN, req->sender_id, 0, req->head.status.error);
    ob1_task_free(pml, t);
}

/* A piece failed. What the path no longer can, another protocol fetches; anything else fails the message. */
static void ob1_rndv_get_failed(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length, int rc)
{
    if (rc == STRATA_ERR_UNSUPPORTED) {
        t->peer->lost_caps |= ST_BTL_GET;
    } else if (rc != STRATA_ERR_PEER || !st_worker_path_lost(t->peer->shared, t->work.path)) {
        t->end = t->next; /* no more of it */
        ob1_req_fail(pml, t->req, rc);
        return;
    }
    ob1_fetch_again(pml, t->req, t->work.path, offset, length);
}

static int ob1_rndv_get_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);
    struct ob1_req *req = t->req;
    struct st_btl_endpoint *ep = st_peer_path(t->peer->shared, w->path);
    bool needs_reg = ep->btl->caps & ST_BTL_NEEDS_REG;
    uint64_t step = needs_reg ? ep->btl->rdma_pipeline : pml->config.piece, turn = INLINE_BYTES;
    struct ob1_piece *piece;
    int rc;

    if (req->failed)
        t->end = t->next;
    if (ST_UNLIKELY(t->next < t->end && st_peer_path_up(t->peer->shared, w->path) != w->path)) {
        uint64_t offset = t->next, left = t->end - offset;
        if (st_peer_path_up(t->peer->shared, w->path) == ST_NO_PATH)
            return STRATA_ERR_AGAIN; /* until the failure of the peer has been dealt with */
        t->end = t->next;
        ob1_fetch_again(pml, req, w->path, offset, left);
    }
    while (t->next < t->end && t->in_flight < (uint32_t)pml->config.depth) {
        uint64_t offset = t->next, len = t->end - offset < step ? t->end - offset : step;
        char *local = (char *)req->data.u.buffer + offset;

        if (turn == 0)
            return ST_WORK_MORE;
        if (!(ep->caps & ST_BTL_GET) || (t->peer->lost_caps & ST_BTL_GET)) {
            len = t->end - offset;
            t->next = t->end;
            ob1_rndv_get_failed(pml, t, offset, len, STRATA_ERR_UNSUPPORTED);
            break;
        }
        piece = ob1_piece_make(pml, t, offset, len);
        rc = piece ? ob1_piece_register(piece, ep->btl, ST_BTL_ANY_USE) : STRATA_ERR_NOMEM;
        if (rc != STRATA_OK && rc != STRATA_ERR_AGAIN) {
            if (piece)
                ob1_piece_free(pml, piece);
            t->next = t->end;
            ob1_not_registered(pml, req, w->path, offset, t->end - offset, rc);
            break;
        }
        if (rc == STRATA_OK) {
            piece->op.done = ob1_rndv_get_done;
            rc = ep->btl->rdma->get(ep, local, req->address + offset, req->key, (size_t)len,
                                    needs_reg ? &piece->reg : NULL, &piece->op);
        }
        if (rc == STRATA_OK) {
            t->in_flight++;
            t->next += len;
            continue;
        }
        if (piece)
            ob1_piece_free(pml, piece);
        if (rc == STRATA_ERR_AGAIN)
            return rc;
        t->next += len;
        if (rc == 1) {
            t->moved += len;
            turn = turn > len ? turn - len : 0;
        } else {
            ob1_rndv_get_failed(pml, t, offset, len, rc);
        }
    }
    if (t->next >= t->end && t->in_flight == 0)
        ob1_rndv_retire(pml, t, false);
    else
        t->parked = true; /* a piece that is done takes it up again */
    return STRATA_OK;
}

static const struct st_work_ops get_work = {ST_AM_PML, ob1_rndv_get_run, ob1_task_drop};

static void ob1_rndv_get_done(struct st_btl_op *op, int rc)
{
    struct ob1_piece *piece = ST_CONTAINER(op, struct ob1_piece, op);
    struct ob1_task *t = piece->task;
    struct ob1 *pml = piece->pml;
    uint64_t offset = piece->offset, length = piece->length;

    ob1_piece_free(pml, piece);
    t->in_flight--;
    if (rc == STRATA_OK)
        t->moved += length;
    else
        ob1_rndv_get_failed(pml, t, offset, length, rc);
    if (t->parked && t->next >= t->end && t->in_flight == 0)
        ob1_rndv_retire(pml, t, true);
    else if (t->parked)
        ob1_task_go(pml, t);
}

int ob1_get_begin(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length)
{
    return ob1_task_begin(pml, req, path, &get_work, offset, length);
}
