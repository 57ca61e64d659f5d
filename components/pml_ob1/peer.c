/* Peers: what the PML keeps of one of the job (struct ob1_peer) and of a matching context (struct ob1_cpeer). Made at
 * the first message in either direction, connected when we first send. */
#include <stdlib.h>
#include "comm.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "stream.h"
#include "thresholds.h"
#include "tuned.h"
#include "wire.h"

int ob1_peer_find(struct ob1 *pml, int job_rank, struct ob1_peer **out)
{
    struct st_peer *shared;
    struct ob1_peer *peer;
    int rc = st_worker_peer(pml->head.worker, job_rank, &shared);

    if (rc != STRATA_OK)
        return rc;
    peer = ob1_peer_of(shared);
    if (peer) {
        *out = peer;
        return STRATA_OK;
    }
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return STRATA_ERR_NOMEM;
    peer->shared = shared;
    st_list_init(&peer->first);
    st_list_init(&peer->streams);
    st_list_init(&peer->throttled);
    shared->client[ST_AM_PML] = peer;
    pml->n_peers++;
    if (shared->bml) /* another client has connected it */
        ob1_peer_changed(pml, shared);
    *out = peer;
    return STRATA_OK;
}

void ob1_peer_changed(void *arg, struct st_peer *shared)
{
    struct ob1 *pml = arg;
    struct ob1_peer *peer = ob1_peer_of(shared);

    if (!peer)
        return;
    /* A put to oneself would only make the owner of the processor copy for the sake of two roles. */
    if (shared->rank == pml->rank)
        peer->lost_caps = (uint16_t)(peer->lost_caps | ST_BTL_PUT);
    ob1_peer_limits(pml, peer);
    ob1_peer_fast(peer);
}

void ob1_peer_lost(struct ob1 *pml, struct ob1_peer *peer, uint32_t caps)
{
    if ((peer->lost_caps & caps) == caps || !peer->shared->bml)
        return;
    peer->lost_caps = (uint16_t)(peer->lost_caps | caps);
    ob1_peer_limits(pml, peer);
    ob1_peer_fast(peer);
}

void ob1_peer_fast(struct ob1_peer *peer)
{
    /* A message that a transport may take without a copy needs a request, unless it is waited for; one that may travel
     * alone takes the long way. */
    int64_t limit = ob1_peer_window_limit(peer);

    if (limit >= peer->alone_min)
        limit = (int64_t)peer->alone_min - 1;
    if (!peer->shared->bml || peer->shared->failed || !st_list_empty(&peer->first))
        limit = -1;
    for (uint32_t i = 0; i < peer->n_members; i++) {
        struct ob1_cpeer *p = ob1_peer_member(peer, i);
        p->fast_limit = limit;
        if (peer->shared->bml && peer->shared->bml->n_paths) {
            p->ep = st_peer_way(peer->shared, 0);
            p->send = p->ep->btl->ops->send;
        }
    }
}

/* Most peers are members of one context, or of few: the list of several has room for a power of two. */
static int ob1_peer_add_member(struct ob1_peer *peer, struct ob1_cpeer *p)
{
    uint32_t n = peer->n_members;
    struct ob1_cpeer **many = n > 1 ? peer->member.many : NULL;

    if (n > 0 && (n & (n - 1)) == 0) {
        struct ob1_cpeer **grown = realloc(many, 2 * n * sizeof(*grown));
        if (!grown)
            return STRATA_ERR_NOMEM;
        many = grown;
        if (n == 1)
            many[0] = peer->member.one;
    }
    if (n == 0) {
        peer->member.one = p;
    } else {
        many[n] = p;
        peer->member.many = many;
    }
    peer->n_members++;
    return STRATA_OK;
}

void ob1_peer_remove_member(struct ob1_peer *peer, const struct ob1_cpeer *p)
{
    struct ob1_cpeer **many = peer->member.many;
    uint32_t i = 0;

    if (peer->n_members == 1) {
        peer->n_members = 0;
        return;
    }
    while (many[i] != p)
        i++;
    many[i] = many[--peer->n_members];
    if (peer->n_members == 1) {
        peer->member.one = many[0];
        free(many);
    }
}

int ob1_cpeer_find(struct ob1_comm *c, int rank, struct ob1_cpeer **out)
{
    struct ob1 *pml = ob1_of(&c->head);
    struct ob1_cpeer *p = st_rank_table_get(&c->peers, (uint32_t)rank);
    struct ob1_peer *peer;
    int job_rank = c->head.world ? c->head.world[rank] : rank, rc;

    if (p) {
        *out = p;
        return STRATA_OK;
    }
    rc = ob1_peer_find(pml, job_rank, &peer);
    if (rc != STRATA_OK)
        return rc;
    p = st_slab_get(&pml->cpeers);
    if (!p)
        return STRATA_ERR_NOMEM;
    rc = st_rank_table_set(&c->peers, (uint32_t)rank, p);
    if (rc == STRATA_OK && (rc = ob1_peer_add_member(peer, p)) != STRATA_OK)
        (void)st_rank_table_set(&c->peers, (uint32_t)rank, NULL);
    if (rc != STRATA_OK) {
        st_slab_put(&pml->cpeers, p);
        return rc;
    }
    *p = (struct ob1_cpeer){.fast_limit = -1, .rank = rank, .job_rank = job_rank, .peer = peer};
    ob1_peer_fast(peer);
    *out = p;
    return STRATA_OK;
}

uint8_t ob1_peer_path_of(const struct ob1_peer *peer, const struct st_btl *btl)
{
    for (uint32_t i = 0; peer->shared->bml && i < peer->shared->bml->n_paths; i++)
        if (peer->shared->bml->paths[i].ep->btl == btl)
            return (uint8_t)i;
    return ST_NO_PATH;
}

/* Work still queued lives in slabs that go as a whole, or belongs to the user. */
void ob1_peers_destroy(struct ob1 *pml)
{
    struct st_worker *w = pml->head.worker;

    st_worker_lock(w);
    for (int64_t i = 0; (i = st_worker_peer_next(w, i)) >= 0; i++) {
        struct st_peer *shared = st_worker_peer_known(w, (int)i);
        struct ob1_peer *peer = ob1_peer_of(shared);
        struct st_node *n;
        if (!peer)
            continue;
        while ((n = st_list_first(&peer->streams)) != NULL)
            ob1_stream_drop(pml, ST_CONTAINER(n, struct ob1_stream, node));
        shared->client[ST_AM_PML] = NULL;
        free(peer->gone);
        free(peer);
    }
    st_worker_unlock(w);
    ob1_tables_destroy(pml);
    ob1_tunes_destroy(pml);
}
