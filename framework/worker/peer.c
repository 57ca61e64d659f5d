/* Peers: made at the first contact, and what clients keep of them. */
#include <stdlib.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/worker/worker.h"

int worker_peers_create(struct worker *w)
{
    st_list_init(&w->pending);
    st_list_init(&w->mending);
    return st_rank_table_init(&w->peers, (uint32_t)w->head.context->rte->size);
}

/* Work that is still queued is the client's own memory: it is taken out, and not run any more. */
static void peer_forget(struct st_peer *peer, enum st_am am)
{
    peer->firsts &= (uint8_t) ~(1u << am);
    for (int i = 0; i < ST_WORK_QUEUES; i++)
        for (struct st_node *n = peer->work[i].next, *next; n != &peer->work[i]; n = next) {
            next = n->next;
            if (ST_CONTAINER(n, struct st_work, node)->ops->am == am)
                st_list_remove(n);
        }
}

void worker_peers_forget(struct worker *w, enum st_am am)
{
    for (int64_t i = 0; (i = st_worker_peer_next(&w->head, i)) >= 0; i++)
        peer_forget(st_rank_table_get(&w->peers, (uint32_t)i), am);
}

void worker_peers_destroy(struct worker *w)
{
    for (int64_t i = 0; (i = st_worker_peer_next(&w->head, i)) >= 0; i++)
        free(st_rank_table_get(&w->peers, (uint32_t)i));
    st_rank_table_destroy(&w->peers);
}

struct st_peer *st_worker_peer_known(const struct st_worker *head, int rank)
{
    return st_rank_table_get(&((const struct worker *)head)->peers, (uint32_t)rank);
}

int64_t st_worker_peer_next(const struct st_worker *head, int64_t from)
{
    return st_rank_table_next(&((const struct worker *)head)->peers, (uint32_t)from);
}

static int peer_make(struct worker *w, int rank, struct st_peer **out)
{
    struct st_peer *peer = calloc(1, sizeof(*peer));
    if (!peer)
        return STRATA_ERR_NOMEM;
    int rc = st_rank_table_set(&w->peers, (uint32_t)rank, peer);
    if (rc != STRATA_OK) {
        free(peer);
        return rc;
    }
    peer->rank = rank;
    for (int i = 0; i < ST_WORK_QUEUES; i++)
        st_list_init(&peer->work[i]);
    st_list_init(&peer->pending);
    w->n_peers++;
    *out = peer;
    return STRATA_OK;
}

int st_worker_peer(struct st_worker *head, int rank, struct st_peer **out)
{
    struct st_peer *peer = st_worker_peer_known(head, rank);
    if (!peer)
        return peer_make(worker_of(head), rank, out);
    *out = peer;
    return STRATA_OK;
}

void worker_peer_changed(struct worker *w, struct st_peer *peer)
{
    for (unsigned am = 0; am < ST_AM_CLIENTS; am++) {
        const struct st_client *c = w->clients[am].row;
        if (c && c->peer_changed)
            c->peer_changed(w->clients[am].arg, peer);
    }
}

void st_worker_facts_changed(struct st_worker *head, int rank)
{
    struct st_peer *peer = rank < 0 ? NULL : st_worker_peer_known(head, rank);

    if (peer && peer->bml && !peer->failed)
        worker_peer_changed(worker_of(head), peer);
}
