/* The cap on unexpected memory. Above it the receiver asks the sender of what it must keep to announce messages instead
 * of sending them; below half of it, to go on as before. Advice: what is under way still comes, and messages that fit
 * beside a header are always sent. */
#include "control.h"
#include "message.h"
#include "ob1.h"
#include "peer.h"
#include "wire.h"
#include "thresholds.h"

/* ---- receiver ---- */

void ob1_unexpected_grew(struct ob1 *pml, int job_rank, size_t bytes)
{
    struct ob1_peer *peer;

    pml->unexpected_bytes += bytes;
    if (ST_LIKELY(pml->unexpected_bytes <= pml->config.unexpected_max) || pml->config.unexpected_max == 0)
        return;
    if (ob1_peer_find(pml, job_rank, &peer) != STRATA_OK || !st_list_empty(&peer->throttled))
        return;
    st_list_append(&pml->throttled, &peer->throttled);
    ob1_control_fin(pml, peer, 0, OB1_THROTTLE, 0, true, STRATA_OK);
}

void ob1_unexpected_shrank(struct ob1 *pml, size_t bytes)
{
    struct st_node *n;

    pml->unexpected_bytes -= bytes;
    if (ST_LIKELY(st_list_empty(&pml->throttled)) || pml->unexpected_bytes > pml->config.unexpected_max / 2)
        return;
    while ((n = st_list_pop(&pml->throttled)) != NULL)
        ob1_control_fin(pml, ST_CONTAINER(n, struct ob1_peer, throttled), 0, OB1_THROTTLE, 0, false, STRATA_OK);
}

/* ---- sender ---- */

void ob1_on_throttle(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_peer *peer;

    if (ob1_peer_find(pml, frag->rank, &peer) != STRATA_OK)
        return;
    peer->announce = h->control.bytes != 0;
    if (!peer->shared->bml)
        return; /* sent to us by mistake, or before we have sent: the limits are set when we connect */
    ob1_peer_limits(pml, peer);
    ob1_peer_fast(peer);
}
