/* A range goes a piece at a time: as many in flight as wanted, and each registered where it must be. */
#include "rndv_move.h"
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "task.h"

#define INLINE_BYTES (4u << 20) /* moved by operations that finish at once before others get their turn */

static const struct ob1_mover *ob1_move_of(const struct ob1_task *t)
{
    return (const struct ob1_mover *)(const void *)t->work.ops;
}

void ob1_move_resume(struct ob1 *pml, struct ob1_task *t)
{
    if (t->parked && t->next >= t->end && t->in_flight == 0)
        ob1_move_of(t)->retire(pml, t, true);
    else if (t->parked)
        ob1_task_go(pml, t);
}

static void ob1_move_done(struct st_btl_op *op, int rc)
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
        ob1_move_of(t)->failed(pml, t, offset, length, rc);
    ob1_move_resume(pml, t);
}

void ob1_move_again(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length, int rc)
{
    if (rc == STRATA_ERR_NOMEM) { /* what cannot be registered goes by fragments */
        rc = ob1_pipeline_ask(pml, t->req, t->work.path, offset, length);
    } else if (rc == STRATA_ERR_UNSUPPORTED ||
               (rc == STRATA_ERR_PEER && st_worker_path_lost(t->peer->shared, t->work.path))) {
        if (rc == STRATA_ERR_UNSUPPORTED)
            ob1_peer_lost(pml, t->peer, ob1_move_of(t)->cap);
        ob1_fetch_again(pml, t->req, t->work.path, offset, length);
        rc = STRATA_OK;
    }
    if (rc == STRATA_OK)
        return;
    t->next = t->end; /* no more of it */
    ob1_req_fail(pml, t->req, rc);
}

/* Starts one piece: STRATA_OK, it is in flight; 1: it has been moved; STRATA_ERR_NOMEM: not registered; other errors as
 * those of the operations. */
static int ob1_move_piece(struct ob1 *pml, struct ob1_task *t, struct st_btl_endpoint *ep, uint64_t offset,
                          uint64_t len)
{
    struct ob1_piece *piece = ob1_piece_make(pml, t, offset, len);
    int rc = piece ? ob1_piece_register(piece, ep->btl, ob1_move_of(t)->use) : STRATA_ERR_NOMEM;

    if (rc == STRATA_OK) {
        piece->op.done = ob1_move_done;
        rc = ob1_move_of(t)->start(t, ep, piece);
    } else if (rc == STRATA_ERR_UNSUPPORTED) {
        rc = STRATA_ERR_NOMEM;
    }
    if (rc != STRATA_OK && piece)
        ob1_piece_free(pml, piece);
    return rc;
}

/* Nothing more of the range is started. */
static void ob1_move_give_up(struct ob1 *pml, struct ob1_task *t, int rc)
{
    uint64_t offset = t->next, left = t->end - offset;

    t->next = t->end;
    ob1_move_of(t)->failed(pml, t, offset, left, rc);
}

int ob1_move_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);
    const struct ob1_mover *m = ob1_move_of(t);
    struct st_btl_endpoint *ep = st_peer_path(t->peer->shared, w->path);
    uint64_t step = ep->btl->caps & ST_BTL_NEEDS_REG ? ep->btl->rdma_pipeline
                    : m->whole                       ? UINT64_MAX
                                                     : pml->config.piece;
    uint64_t turn = INLINE_BYTES;
    uint8_t up = st_peer_path_up(t->peer->shared, w->path);

    if (t->req->failed)
        t->end = t->next;
    if (t->next < t->end && up == ST_NO_PATH)
        return STRATA_ERR_AGAIN; /* until the failure of the peer has been dealt with */
    if (t->next < t->end && up != w->path)
        ob1_move_give_up(pml, t, STRATA_ERR_PEER);
    else if (t->next < t->end && !(ep->caps & ~(uint32_t)t->peer->lost_caps & m->cap))
        ob1_move_give_up(pml, t, STRATA_ERR_UNSUPPORTED);
    while (t->next < t->end && t->in_flight < (uint32_t)pml->config.depth) {
        uint64_t offset = t->next, len = t->end - offset < step ? t->end - offset : step;
        int rc;

        if (turn == 0)
            return ST_WORK_MORE;
        rc = ob1_move_piece(pml, t, ep, offset, len);
        if (rc == STRATA_ERR_AGAIN)
            return rc;
        if (rc == STRATA_OK) {
            t->in_flight++;
            t->next += len;
        } else if (rc == 1) {
            t->moved += len;
            t->next += len;
            turn = turn > len ? turn - len : 0;
        } else {
            ob1_move_give_up(pml, t, rc);
        }
    }
    if (t->next >= t->end && t->in_flight == 0)
        m->retire(pml, t, false);
    else
        t->parked = true; /* a piece that is done takes it up again */
    return STRATA_OK;
}

int ob1_move_begin(struct ob1 *pml, struct ob1_req *req, const struct ob1_mover *mover, uint8_t path, uint64_t offset,
                   uint64_t length, uint64_t remote, const uint8_t *key)
{
    struct ob1_task *t = ob1_task_make(pml, req, path, &mover->work, true, offset, length);

    if (!t)
        return STRATA_ERR_NOMEM;
    t->remote = remote;
    if (key)
        memcpy(t->key, key, ST_BTL_KEY_MAX);
    ob1_task_go(pml, t);
    return STRATA_OK;
}
