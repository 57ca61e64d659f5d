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

static void throttle_send(struct ob1 *pml, struct ob1_peer *peer, bool announce)
{
    ob1_control_fin(pml, peer, 0, OB1_THROTTLE, ++peer->throttle_sent, announce, STRATA_OK);
}

void ob1_unexpected_grew(struct ob1 *pml, int job_rank, size_t bytes)
{
    struct ob1_peer *peer;

    pml->unexpected_bytes += bytes;
    if (ST_LIKELY(pml->unexpected_bytes <= pml->config.unexpected_max) || pml->config.unexpected_max == 0)
        return;
    if (ob1_peer_find(pml, job_rank, &peer) != STRATA_OK || !st_list_empty(&peer->throttled))
        return;
    st_list_append(&pml->throttled, &peer->throttled);
    throttle_send(pml, peer, true);
}

void ob1_unexpected_left(struct ob1 *pml, size_t bytes)
{
    pml->unexpected_bytes += bytes;
}

void ob1_unexpected_shrank(struct ob1 *pml, size_t bytes)
{
    struct st_node *n;

    pml->unexpected_bytes -= bytes;
    if (ST_LIKELY(st_list_empty(&pml->throttled)) || pml->unexpected_bytes > pml->config.unexpected_max / 2)
        return;
    while ((n = st_list_pop(&pml->throttled)) != NULL)
        throttle_send(pml, ST_CONTAINER(n, struct ob1_peer, throttled), false);
}

/* ---- sender ---- */

void ob1_on_throttle(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_peer *peer;
    uint8_t number = (uint8_t)h->control.id;

    if (ob1_peer_find(pml, frag->rank, &peer) != STRATA_OK || (int8_t)(number - peer->throttle_received) <= 0)
        return;
    peer->throttle_received = number;
    peer->announce = h->control.bytes != 0;
    if (!peer->shared->bml)
        return; /* sent to us by mistake, or before we have sent: the limits are set when we connect */
    ob1_peer_limits(pml, peer);
    ob1_peer_fast(peer);
}
