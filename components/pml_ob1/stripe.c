/* Which paths fetch which part of a message, and how. Long messages go over all paths of the peer, each getting the
 * share that its weight says; the protocol of each share is chosen by itself. */
#include "choose.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "wire.h"
#include "thresholds.h"

#define SHARE_ALIGN 4096u /* boundaries between shares: whole pages, so that no two paths touch one */

static enum ob1_protocol ob1_stripe_choose(struct ob1 *pml, const struct ob1_req *req, const struct st_btl_endpoint *ep,
                                           uint64_t length)
{
    const struct ob1_peer *peer = req->peer;
    bool at_once = req->offer & OB1_F_AT_ONCE;
    uint8_t known = ob1_table_answer(pml, req, ep, length);
    struct st_thresholds t;

    if (ST_LIKELY(known != OB1_WAY_CUT))
        return (enum ob1_protocol)known;
    ob1_thresholds(pml, ep, &t);
    struct ob1_choice c = {.matched = true,
                           .contiguous = req->data.kind == STRATA_CONTIGUOUS,
                           .peer_exposed = (req->offer & OB1_F_EXPOSED) != 0,
                           .peer_key = (req->offer & OB1_F_KEY) != 0 && ep->btl == req->key_btl,
                           .wanted = (enum ob1_rndv)pml->config.rndv,
                           .caps = ep->caps & ~(uint32_t)peer->lost_caps,
                           .length = length,
                           .rdma_min = at_once ? 0 : t.rdma_min,
                           .split_min = at_once ? t.alone_split_min : t.split_min};
    return ob1_choose(&c);
}

/* Starts fetching one range over one path. */
static void ob1_stripe_fetch(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length,
                             uint64_t message)
{
    struct st_btl_endpoint *ep = st_peer_path(req->peer->shared, path);
    /* Thresholds are about messages, not about what is left of them. */
    enum ob1_protocol p = ob1_stripe_choose(pml, req, ep, message > length ? message : length);
    uint64_t half;
    int rc = STRATA_OK;

    pml->by_protocol[p]++;
    switch (p) {
    case OB1_P_GET:
        rc = ob1_get_begin(pml, req, path, offset, length);
        break;
    case OB1_P_PUT:
        rc = ob1_put_ask(pml, req, path, offset, length);
        break;
    case OB1_P_SPLIT:
        /* Ask first: the sender puts its half while we pull ours. */
        half = length / 2 / SHARE_ALIGN * SHARE_ALIGN;
        if (half == 0)
            half = length / 2;
        rc = ob1_put_ask(pml, req, path, offset + half, length - half);
        if (rc == STRATA_OK && half) {
            length = half;
            rc = ob1_get_begin(pml, req, path, offset, length);
        }
        break;
    default:
        rc = ob1_pipeline_ask(pml, req, path, offset, length);
    }
    if (rc != STRATA_OK) /* no memory for a task: fragments need none at this end */
        (void)ob1_pipeline_ask(pml, req, path, offset, length);
}

/* Where no path works a range waits on the one that it has for the peer's failure to be dealt with. */
static uint8_t ob1_stripe_usable(const struct ob1_peer *peer, uint8_t path)
{
    uint8_t up = st_peer_path_up(peer->shared, path);

    return up == ST_NO_PATH ? path : up;
}

void ob1_fetch(struct ob1 *pml, struct ob1_req *req, uint64_t offset, uint64_t length)
{
    const struct ob1_peer *peer = req->peer;
    const struct st_bml_peer *bml = peer->shared->bml;
    uint32_t n = length >= pml->config.stripe_min ? bml->n_paths : 1, last = 0;
    uint64_t at = offset, end = offset + length;
    float weight = 0;

    for (uint32_t i = 0; i < n; i++)
        if (bml->paths[i].weight > 0)
            last = i;
    for (uint32_t i = 0; i <= last && at < end; i++) {
        uint64_t to = end;
        weight += bml->paths[i].weight;
        if (i < last) {
            to = offset + (uint64_t)((double)length * (double)weight) / SHARE_ALIGN * SHARE_ALIGN;
            to = to < at ? at : to > end ? end : to;
        }
        if (to > at)
            ob1_stripe_fetch(pml, req, ob1_stripe_usable(peer, (uint8_t)i), at, to - at, length);
        at = to;
    }
}

/* A range that its protocol or its path could not move: the capability or the path is gone by now, so the choice is
 * another one. */
void ob1_fetch_again(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length)
{
    if (length && !req->failed)
        ob1_stripe_fetch(pml, req, ob1_stripe_usable(req->peer, path), offset, length, length);
}
