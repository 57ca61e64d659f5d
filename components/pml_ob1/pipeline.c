/* Rendezvous by fragments: the receiver says which range it wants, the sender sends it in order over the path that the
 * request came by. Any kind of data on either side. */
#include <strata/sdk/btl_send.h>
#include "control.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "send.h"
#include "task.h"
#include "wire.h"

#define FRAGMENTS_PER_TURN 64

/* ---- receiver ---- */

int ob1_pipeline_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length)
{
    struct wire_request h = {.type = OB1_CTS,
                             .found = req->found,
                             .id = req->sender_id,
                             .answer = req->id,
                             .offset = offset,
                             .length = length};

    ob1_control(pml, req->peer, path, &h, sizeof(h), NULL, 0);
    return STRATA_OK;
}

void ob1_on_data(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_req *req = st_wire_id_find(&pml->ids, OB1_ID_RECV, h->data.id);
    uint64_t offset = h->data.offset;
    int rc;

    if (!req || req->peer->shared->rank != frag->rank) {
        ob1_protocol_error(pml, frag, "data for a receive that is not under way");
        return;
    }
    if (offset > req->expect || frag->len > req->expect - offset || frag->len > req->expect - req->done) {
        ob1_protocol_error(pml, frag, "data beyond the end of the message");
        return;
    }
    rc = ob1_recv_part(req, offset, frag->data, frag->len);
    if (ST_UNLIKELY(rc != STRATA_OK && !req->failed))
        req->head.status.error = rc; /* the rest is taken in, so that the sender gets done */
    req->done += frag->len;
    if (req->done >= req->expect)
        ob1_req_try_end(pml, req);
}

/* ---- sender ---- */

static int ob1_pipeline_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);
    struct ob1_req *req = t->req;
    struct st_btl_endpoint *ep = st_peer_way(t->peer->shared, w->path);
    uint32_t piece = ep->btl->pipeline_send, turn = FRAGMENTS_PER_TURN;
    int rc;

    while (t->next < t->end && !req->failed) {
        uint32_t len = t->end - t->next < piece ? (uint32_t)(t->end - t->next) : piece;
        struct wire_data h = {.type = OB1_DATA, .id = t->answer, .offset = t->next};

        if (turn-- == 0)
            return ST_WORK_MORE;
        rc = st_btl_send_bulk_part(ep, ST_AM_PML, &h, sizeof(h), &req->data, t->next, len);
        if (rc == STRATA_ERR_AGAIN) /* something went out: whoever waits for us is not idle */
            return turn + 1 < FRAGMENTS_PER_TURN ? ST_WORK_MORE : rc;
        if (rc != STRATA_OK) { /* packing failed, or the peer is gone */
            ob1_control_fin(pml, t->peer, w->path, OB1_FIN, t->answer, 0, rc);
            ob1_req_fail(pml, req, rc);
            break;
        }
        t->next += len;
    }
    req->done += t->end - t->base;
    ob1_task_free(pml, t);
    return STRATA_OK;
}

static const struct st_work_ops pipeline_work = {ST_AM_PML, ob1_pipeline_run, ob1_task_drop};

void ob1_on_cts(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_req *req = ob1_request_to(pml, frag, &h->request);
    struct ob1_task *t;
    uint8_t path;

    if (!req)
        return;
    path = ob1_peer_path_of(req->peer, frag->btl);
    t = ob1_task_make(pml, req, path == ST_NO_PATH ? 0 : path, &pipeline_work, false, h->request.offset,
                      h->request.length);
    if (!t) {
        ob1_request_refuse(pml, frag, &h->request, STRATA_ERR_NOMEM);
        ob1_req_fail(pml, req, STRATA_ERR_NOMEM);
        return;
    }
    t->answer = h->request.answer;
    ob1_task_go(pml, t);
}
