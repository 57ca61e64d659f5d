/* Rendezvous by put: the receiver says where (and, where memory is registered, with which key), the sender puts and
 * reports. With registration the range goes in pieces, so that registering, transfer and the next request overlap. */
#include <strata/sdk/btl_rdma.h>
#include "control.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "rndv_move.h"
#include "task.h"
#include "wire.h"

/* ---- receiver ---- */

static int ob1_rndv_ask_start(struct ob1_task *t, struct st_btl_endpoint *ep, struct ob1_piece *piece)
{
    struct wire_put h = {.request = {.type = OB1_PUT,
                                     .found = t->req->found,
                                     .id = t->req->sender_id,
                                     .offset = piece->offset,
                                     .length = piece->length},
                         .address = (uint64_t)(uintptr_t)((char *)t->req->data.u.buffer + piece->offset)};

    (void)ep;
    h.request.answer = piece->id = st_wire_id_get(&piece->pml->ids, OB1_ID_PUT, piece);
    if (!piece->id)
        return STRATA_ERR_NOMEM;
    ob1_control(piece->pml, t->peer, t->work.path, &h, sizeof(h), piece->registered ? piece->reg.key : NULL,
                piece->registered ? ST_BTL_KEY_MAX : 0);
    return STRATA_OK;
}

static void ob1_rndv_ask_retire(struct ob1 *pml, struct ob1_task *t, bool later)
{
    (void)later;
    if (t->req->failed)
        ob1_control_answer(pml, t->req, t->work.path, 0, t->req->head.status.error);
    ob1_task_free(pml, t);
}

static const struct ob1_mover asking = {.work = {ST_AM_PML, ob1_move_run, ob1_task_drop},
                                        .cap = ST_BTL_PUT,
                                        .use = ST_BTL_ANY_USE,
                                        .whole = true,
                                        .start = ob1_rndv_ask_start,
                                        .failed = ob1_move_again,
                                        .retire = ob1_rndv_ask_retire};

int ob1_put_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length)
{
    return ob1_move_begin(pml, req, &asking, path, offset, length, 0, NULL);
}

/* Fetches the bytes that the sender has left of a piece, in the way that its status allows. */
static void ob1_rndv_ask_again(struct ob1 *pml, struct ob1_task *t, int status, uint64_t offset, uint64_t length)
{
    struct ob1_req *req = t->req;

    switch (status) {
    case STRATA_ERR_UNSUPPORTED:
        ob1_peer_lost(pml, t->peer, ST_BTL_PUT);
        ob1_fetch_again(pml, req, t->work.path, offset, length);
        break;
    case STRATA_ERR_AGAIN:
        ob1_fetch_again(pml, req, t->work.path, offset, length);
        break;
    case STRATA_ERR_NOMEM: /* what the sender cannot register goes by fragments; other messages are put as before */
        if (length && !req->failed)
            (void)ob1_pipeline_ask(pml, req, t->work.path, offset, length);
        break;
    default:
        ob1_req_fail(pml, req, status);
    }
}

void ob1_put_answered(struct ob1 *pml, struct ob1_piece *piece, int status, uint64_t bytes)
{
    struct ob1_task *t = piece->task;
    uint64_t offset = piece->offset, length = piece->length;

    if (bytes > length || (status == STRATA_OK && bytes != length)) {
        status = STRATA_ERR_PROTOCOL;
        bytes = 0;
    }
    ob1_piece_free(pml, piece);
    t->in_flight--;
    t->req->done += bytes;
    if (status != STRATA_OK)
        ob1_rndv_ask_again(pml, t, status, offset + bytes, length - bytes);
    ob1_move_resume(pml, t);
}

/* ---- sender ---- */

static void ob1_rndv_put_retire(struct ob1 *pml, struct ob1_task *t, bool later)
{
    struct ob1_req *req = t->req;
    bool lost = t->fail_at != UINT64_MAX;
    uint64_t bytes = (lost ? t->fail_at : t->end) - t->base;

    (void)later;
    if (req->failed)
        ob1_control_fin(pml, t->peer, t->work.path, OB1_FIN, t->answer, 0, req->head.status.error);
    else
        ob1_control_fin(pml, t->peer, t->work.path, OB1_FIN, t->answer, bytes, lost ? t->left_by : STRATA_OK);
    req->done += bytes;
    ob1_task_free(pml, t);
}

/* From the first byte that could not be put on, all is left to another protocol. */
static void ob1_rndv_put_failed(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length, int rc)
{
    (void)length;
    t->next = t->end;
    if (rc == STRATA_ERR_PEER && st_worker_path_lost(t->peer->shared, t->work.path)) {
        rc = STRATA_ERR_AGAIN;
    } else if (rc == STRATA_ERR_UNSUPPORTED) {
        ob1_peer_lost(pml, t->peer, ST_BTL_PUT);
    } else if (rc != STRATA_ERR_NOMEM) {
        ob1_req_fail(pml, t->req, rc);
        return;
    }
    if (offset < t->fail_at) {
        t->fail_at = offset;
        t->left_by = rc;
    }
}

static int ob1_rndv_put_start(struct ob1_task *t, struct st_btl_endpoint *ep, struct ob1_piece *piece)
{
    return ep->btl->rdma->put(ep, (char *)t->req->data.u.buffer + piece->offset, t->remote + (piece->offset - t->base),
                              t->key, (size_t)piece->length, piece->registered ? &piece->reg : NULL, &piece->op);
}

static const struct ob1_mover putting = {.work = {ST_AM_PML, ob1_move_run, ob1_task_drop},
                                         .cap = ST_BTL_PUT,
                                         .use = ST_BTL_SOURCE,
                                         .start = ob1_rndv_put_start,
                                         .failed = ob1_rndv_put_failed,
                                         .retire = ob1_rndv_put_retire};

void ob1_on_put(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_req *req = ob1_request_to(pml, frag, &h->request);
    struct ob1_task *t = NULL;
    uint8_t path;

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
    /* The receiver may have a path that this end could not connect: its key is for none of ours. */
    path = ob1_peer_path_of(req->peer, frag->btl);
    if (path != ST_NO_PATH)
        t = ob1_task_make(pml, req, path, &putting.work, true, h->request.offset, h->request.length);
    if (!t) {
        ob1_request_refuse(pml, frag, &h->request, STRATA_ERR_NOMEM);
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
