/* Rendezvous by put: the receiver says where (and, where memory is registered, with which key), the sender puts and
 * reports. With registration the range goes in pieces, so that registering, transfer and the next request overlap. */
#include <strata/sdk/btl_rdma.h>
#include "control.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "task.h"
#include "wire.h"

#define INLINE_BYTES (4u << 20) /* put by puts that finish at once before others get their turn */

/* ---- receiver ---- */

static void ob1_rndv_ask_retire(struct ob1 *pml, struct ob1_task *t)
{
    if (t->req->failed)
        ob1_control_fin(pml, t->peer, t->work.path, OB1_FIN, t->req->sender_id, 0, t->req->head.status.error);
    ob1_task_free(pml, t);
}

static int ob1_rndv_ask_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);
    struct ob1_req *req = t->req;
    uint8_t path = st_peer_path_up(t->peer->shared, w->path);
    struct st_btl *btl = st_peer_path(t->peer->shared, path)->btl;
    bool needs_reg = btl->caps & ST_BTL_NEEDS_REG;
    uint64_t step = needs_reg ? btl->rdma_pipeline : t->end - t->next;

    if (req->failed)
        t->end = t->next;
    if (ST_LIKELY(path != ST_NO_PATH))
        w->path = path;
    else if (t->next < t->end)
        return STRATA_ERR_AGAIN; /* until the failure of the peer has been dealt with */
    while (t->next < t->end && t->in_flight < (uint32_t)pml->config.depth) {
        uint64_t len = t->end - t->next < step ? t->end - t->next : step;
        char *local = (char *)req->data.u.buffer + t->next;
        struct ob1_piece *piece = ob1_piece_make(pml, t, t->next, len);
        struct wire_put h = {.request = {.type = OB1_PUT, .id = req->sender_id, .offset = t->next, .length = len},
                             .address = (uint64_t)(uintptr_t)local};
        int rc = piece ? ob1_piece_register(piece, btl, ST_BTL_ANY_USE) : STRATA_ERR_NOMEM;

        if (rc == STRATA_OK) {
            h.request.answer = piece->id = st_wire_id_get(&pml->ids, OB1_ID_PUT, piece);
            rc = piece->id ? STRATA_OK : STRATA_ERR_NOMEM;
        }
        if (rc != STRATA_OK) {
            uint64_t rest = t->end - t->next, at = t->next;
            if (piece)
                ob1_piece_free(pml, piece);
            if (rc == STRATA_ERR_AGAIN)
                return rc;
            t->next = t->end;
            ob1_not_registered(pml, req, w->path, at, rest, rc);
            break;
        }
        ob1_control(pml, t->peer, w->path, &h, sizeof(h), needs_reg ? piece->reg.key : NULL,
                    needs_reg ? ST_BTL_KEY_MAX : 0);
        t->in_flight++;
        t->next += len;
    }
    if (t->next >= t->end && t->in_flight == 0)
        ob1_rndv_ask_retire(pml, t);
    else
        t->parked = true;
    return STRATA_OK;
}

static const struct st_work_ops ask_work = {ST_AM_PML, ob1_rndv_ask_run, ob1_task_drop};

int ob1_put_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length)
{
    return ob1_task_begin(pml, req, path, &ask_work, offset, length);
}

/* The sender has put `bytes` from the start of the piece; with UNSUPPORTED the rest is fetched in another way. */
void ob1_put_answered(struct ob1 *pml, struct ob1_piece *piece, int status, uint64_t bytes)
{
    struct ob1_task *t = piece->task;
    struct ob1_req *req = t->req;
    uint64_t offset = piece->offset, length = piece->length;

    if (bytes > length || (status == STRATA_OK && bytes != length)) {
        status = STRATA_ERR_PROTOCOL;
        bytes = 0;
    }
    ob1_piece_free(pml, piece);
    t->in_flight--;
    req->done += bytes;
    if (status == STRATA_ERR_UNSUPPORTED)
        t->peer->lost_caps |= ST_BTL_PUT;
    if (status == STRATA_ERR_UNSUPPORTED || status == STRATA_ERR_AGAIN) /* AGAIN: the path of the request has failed */
        ob1_fetch_again(pml, req, t->work.path, offset + bytes, length - bytes);
    else if (status != STRATA_OK)
        ob1_req_fail(pml, req, status);
    if (t->parked)
        ob1_task_go(pml, t);
}

/* ---- sender ---- */

static void ob1_rndv_put_done(struct st_btl_op *op, int rc);

static void ob1_rndv_put_retire(struct ob1 *pml, struct ob1_task *t)
{
    struct ob1_req *req = t->req;
    bool lost = t->fail_at != UINT64_MAX;
    uint64_t bytes = (lost ? t->fail_at : t->end) - t->base;

    if (req->failed)
        ob1_control_fin(pml, t->peer, t->work.path, OB1_FIN, t->answer, 0, req->head.status.error);
    else
        ob1_control_fin(pml, t->peer, t->work.path, OB1_FIN, t->answer, bytes,
                        t->path_lost ? STRATA_ERR_AGAIN
                        : lost       ? STRATA_ERR_UNSUPPORTED
                                     : STRATA_OK);
    req->done += bytes;
    ob1_task_free(pml, t);
}

/* From the first byte that could not be put on, all is left to another protocol. */
static void ob1_rndv_put_failed(struct ob1 *pml, struct ob1_task *t, uint64_t offset, int rc)
{
    if (rc == STRATA_ERR_PEER && st_worker_path_lost(t->peer->shared, t->work.path)) {
        t->path_lost = true;
    } else if (rc == STRATA_ERR_UNSUPPORTED) {
        t->peer->lost_caps |= ST_BTL_PUT;
    } else {
        t->next = t->end;
        ob1_req_fail(pml, t->req, rc);
        return;
    }
    t->next = t->end;
    if (offset < t->fail_at)
        t->fail_at = offset;
}

static int ob1_rndv_put_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);
    struct ob1_req *req = t->req;
    struct st_btl_endpoint *ep = st_peer_path(t->peer->shared, w->path);
    bool needs_reg = ep->btl->caps & ST_BTL_NEEDS_REG;
    uint64_t step = needs_reg ? ep->btl->rdma_pipeline : pml->config.piece, turn = INLINE_BYTES;

    if (req->failed)
        t->next = t->end;
    else if (ST_UNLIKELY(t->next < t->end && st_peer_path_up(t->peer->shared, w->path) != w->path))
        ob1_rndv_put_failed(pml, t, t->next, STRATA_ERR_PEER);
    else if (!(ep->caps & ST_BTL_PUT) && t->next < t->end)
        ob1_rndv_put_failed(pml, t, t->next, STRATA_ERR_UNSUPPORTED);
    while (t->next < t->end && t->in_flight < (uint32_t)pml->config.depth) {
        uint64_t offset = t->next, len = t->end - offset < step ? t->end - offset : step;
        char *local = (char *)req->data.u.buffer + offset;
        struct ob1_piece *piece;
        int rc;

        if (turn == 0)
            return ST_WORK_MORE;
        piece = ob1_piece_make(pml, t, offset, len);
        rc = piece ? ob1_piece_register(piece, ep->btl, ST_BTL_SOURCE) : STRATA_ERR_NOMEM;
        if (rc == STRATA_OK) {
            piece->op.done = ob1_rndv_put_done;
            rc = ep->btl->rdma->put(ep, local, t->remote + (offset - t->base), t->key, (size_t)len,
                                    needs_reg ? &piece->reg : NULL, &piece->op);
        } else if (rc == STRATA_ERR_NOMEM) {
            rc = STRATA_ERR_UNSUPPORTED; /* what cannot be registered goes in fragments */
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
        if (rc == 1) {
            t->next += len;
            turn = turn > len ? turn - len : 0;
        } else {
            ob1_rndv_put_failed(pml, t, offset, rc);
        }
    }
    if (t->next >= t->end && t->in_flight == 0)
        ob1_rndv_put_retire(pml, t);
    else
        t->parked = true;
    return STRATA_OK;
}

static const struct st_work_ops put_work = {ST_AM_PML, ob1_rndv_put_run, ob1_task_drop};

static void ob1_rndv_put_done(struct st_btl_op *op, int rc)
{
    struct ob1_piece *piece = ST_CONTAINER(op, struct ob1_piece, op);
    struct ob1_task *t = piece->task;
    struct ob1 *pml = piece->pml;
    uint64_t offset = piece->offset;

    ob1_piece_free(pml, piece);
    t->in_flight--;
    if (rc != STRATA_OK)
        ob1_rndv_put_failed(pml, t, offset, rc);
    if (t->parked)
        ob1_task_go(pml, t);
}

void ob1_on_put(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_req *req = ob1_request_to(pml, frag, &h->request);
    struct ob1_task *t;

    if (!req)
        return;
    if (req->data.kind != STRATA_CONTIGUOUS) {
        ob1_protocol_error(pml, frag, "request to put what is not contiguous");
        return;
    }
    if (!frag->btl) { /* meant for another path, of which nothing is known but that it failed */
        ob1_control_fin(pml, req->peer, 0, OB1_FIN, h->request.answer, 0, STRATA_ERR_AGAIN);
        return;
    }
    t = ob1_task_make(pml, req, ob1_peer_path_of(req->peer, frag->btl), &put_work, true, h->request.offset,
                      h->request.length);
    if (!t) {
        ob1_req_fail(pml, req, STRATA_ERR_NOMEM);
        return;
    }
    t->answer = h->request.answer;
    t->remote = h->put.address;
    if (frag->len >= ST_BTL_KEY_MAX)
        memcpy(t->key, frag->data, ST_BTL_KEY_MAX);
    else
        memset(t->key, 0, ST_BTL_KEY_MAX);
    ob1_task_go(pml, t);
}
