/* First fragments that wait for their peer. They get their sequence numbers when they leave, so they stay requests in a
 * list of the PML's, which the worker asks to go on between a peer's control messages and the rest. */
#include <strata/sdk/btl_hints.h>
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "send.h"

void ob1_first_queue(struct ob1 *pml, struct ob1_req *req)
{
    struct ob1_peer *peer = req->peer;
    bool was_empty = st_list_empty(&peer->first);

    st_list_append(&peer->first, &req->work.node);
    st_worker_firsts(pml->head.worker, peer->shared, ST_AM_PML);
    if (was_empty)
        ob1_peer_fast(peer);
}

/* In order and by one path: the first that has to wait ends the round, so that a look in vain costs the same however
 * many wait. */
static int ob1_firsts_each(struct ob1 *pml, struct st_node *list, uint32_t *busy)
{
    struct st_node *n;
    int moved = 0;

    while (!(*busy & 1u) && (n = st_list_pop(list)) != NULL) {
        if (ob1_first_run(pml, ST_CONTAINER(n, struct ob1_req, work.node)) == STRATA_ERR_AGAIN) {
            st_list_prepend(list, n);
            *busy |= 1u;
        } else {
            moved++;
        }
    }
    return moved;
}

/* All that can go, by one doorbell where the transport can do that. */
int ob1_firsts(void *arg, struct st_peer *shared, uint32_t *busy)
{
    struct ob1 *pml = arg;
    struct ob1_peer *peer = ob1_peer_of(shared);
    struct st_btl_endpoint *ep = st_peer_way(peer->shared, 0);
    void (*batch)(struct st_btl * btl, bool on) = peer->first.next->next != &peer->first ? ep->btl->hints->batch : NULL;
    int n;

    if (batch)
        batch(ep->btl, true);
    n = ob1_coalesce(pml, peer, busy) + ob1_firsts_each(pml, &peer->first, busy);
    if (batch)
        batch(ep->btl, false);
    st_peer_path(shared, 0)->caps &= ~(uint32_t)ST_BTL_CROWDED;
    if (st_list_empty(&peer->first)) {
        shared->firsts &= (uint8_t) ~(1u << ST_AM_PML);
        ob1_peer_fast(peer);
    }
    return n;
}
