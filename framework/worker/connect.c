/* Connects a peer: its paths, its lane, polling of its modules. */
#include "framework/worker/lane.h"

int st_worker_connect(struct st_worker *head, struct st_peer *peer)
{
    struct worker *w = worker_of(head);
    if (peer->failed)
        return peer->failed;
    if (peer->bml)
        return STRATA_OK;
    int rc = head->bml->ops->peer(head->bml, peer->rank, &peer->bml);
    if (rc == STRATA_OK)
        rc = lane_connect(w, peer);
    if (rc != STRATA_OK) {
        peer->bml = NULL; /* where the bml has it, the next message tries the lane again */
        return rc;
    }
    for (uint32_t i = 0; i < peer->bml->n_paths; i++)
        st_worker_poll_add(head, peer->bml->paths[i].ep->btl);
    worker_peer_changed(w, peer);
    return STRATA_OK;
}
