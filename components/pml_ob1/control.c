/* Control messages: acknowledgements, requests and reports of the protocols. They go out at once or wait ahead of
 * everything else for their peer. */
#include "control.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "wire.h"

/* STRATA_OK: it has been sent, or never will be; STRATA_ERR_AGAIN. */
static int ob1_control_send(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, const void *hdr, uint32_t hdr_len,
                            const void *data, uint32_t len)
{
    struct st_btl_endpoint *ep = st_peer_way(peer->shared, path);
    int rc = ep->btl->ops->send(ep, ST_AM_PML, hdr, hdr_len, data, len);

    if (rc != STRATA_OK && rc != STRATA_ERR_AGAIN)
        st_worker_peer_failed(pml->head.worker, peer->shared->rank, rc, "a control message could not be sent");
    return rc == STRATA_ERR_AGAIN ? rc : STRATA_OK;
}

static int ob1_control_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_control *m = ST_CONTAINER(w, struct ob1_control, work);
    int rc = ob1_control_send(pml, m->peer, w->path, m->hdr, m->hdr_len, m->data, m->len);

    if (rc == STRATA_OK)
        st_slab_put(&pml->controls, m);
    return rc;
}

static void ob1_control_drop(void *arg, struct st_work *w, int rc)
{
    (void)rc;
    st_slab_put(&((struct ob1 *)arg)->controls, ST_CONTAINER(w, struct ob1_control, work));
}

static const struct st_work_ops control_work = {ST_AM_PML, ob1_control_run, ob1_control_drop};

void ob1_control(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, const void *hdr, uint32_t hdr_len,
                 const void *data, uint32_t len)
{
    struct ob1_control *m;

    if (peer->shared->failed)
        return;
    /* A peer that we have only heard from is connected by progress: no connecting inside a BTL's callback. */
    if (ST_LIKELY(peer->shared->bml && st_list_empty(&peer->shared->work[ST_WORK_CONTROL])) &&
        ob1_control_send(pml, peer, path, hdr, hdr_len, data, len) == STRATA_OK)
        return;
    m = st_slab_get(&pml->controls);
    if (!m) {
        st_worker_peer_failed(pml->head.worker, peer->shared->rank, STRATA_ERR_NOMEM,
                              "no memory for a control message");
        return;
    }
    m->work = (struct st_work){.ops = &control_work, .path = path};
    m->peer = peer;
    m->hdr_len = (uint8_t)hdr_len;
    m->len = (uint8_t)len;
    memcpy(m->hdr, hdr, hdr_len);
    if (len)
        memcpy(m->data, data, len);
    st_worker_queue(pml->head.worker, peer->shared, ST_WORK_CONTROL, &m->work);
}

void ob1_control_fin(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, enum ob1_type type, uint64_t id,
                     uint64_t bytes, int status)
{
    struct wire_control h = {.type = (uint8_t)type, .status = status, .id = id, .bytes = bytes};

    ob1_control(pml, peer, path, &h, sizeof(h), NULL, 0);
}

void ob1_control_answer(struct ob1 *pml, const struct ob1_req *req, uint8_t path, uint64_t bytes, int status)
{
    struct wire_control h = {
        .type = OB1_FIN, .found = req->found, .status = status, .id = req->sender_id, .bytes = bytes};

    ob1_control(pml, req->peer, path, &h, sizeof(h), NULL, 0);
}
