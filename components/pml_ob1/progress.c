/* Progress: BTLs, then the work that waits. Per peer control messages go first, then first fragments, then the rest of
 * streams, then rendezvous; each in order, so that a message gets done before the next takes the cache. A path that is
 * busy is not tried again in the same round. */
#include "ob1_inl.h"

void ob1_queue(struct ob1 *pml, struct ob1_peer *peer, struct st_node *list, struct ob1_work *w)
{
    bool was_empty = st_list_empty(list);

    st_list_append(list, &w->node);
    if (!peer->is_blocked) {
        peer->is_blocked = true;
        st_list_append(&pml->blocked, &peer->blocked);
        st_worker_attend(pml->head.worker, OB1_WORK);
    }
    if (list == &peer->first && was_empty)
        ob1_peer_fast(peer);
}

/* Runs each item of the list once; what is not finished goes back, in order. Returns how many moved. */
static int drive_list(struct ob1 *pml, struct st_node *list, uint32_t *busy)
{
    struct st_node round;
    struct st_node *n;
    int moved = 0;

    if (st_list_empty(list))
        return 0;
    /* Move all to a list of our own: what is queued meanwhile gets its turn next time. */
    round = *list;
    round.next->prev = round.prev->next = &round;
    st_list_init(list);
    while ((n = st_list_pop(&round)) != NULL) {
        struct ob1_work *w = ST_CONTAINER(n, struct ob1_work, node);
        uint32_t bit = 1u << (w->path + (w->rdma ? ST_BML_MAX_PATHS : 0));
        int rc = STRATA_ERR_AGAIN;

        if (!(*busy & bit))
            rc = w->run(pml, w);
        if (rc == STRATA_ERR_AGAIN)
            *busy |= bit;
        if (rc != STRATA_ERR_AGAIN)
            moved++;
        if (rc != STRATA_OK)
            st_list_append(list, n);
    }
    return moved;
}

/* First fragments go in order and by one path: the first that has to wait ends the round, so that a look in vain costs
 * the same however many wait. */
static int drive_first(struct ob1 *pml, struct st_node *list, uint32_t *busy)
{
    struct st_node *n;
    int moved = 0;

    while (!(*busy & 1u) && (n = st_list_pop(list)) != NULL) {
        struct ob1_work *w = ST_CONTAINER(n, struct ob1_work, node);
        if (w->run(pml, w) == STRATA_ERR_AGAIN) {
            st_list_prepend(list, n);
            *busy |= 1u;
        } else {
            moved++;
        }
    }
    return moved;
}

/* All first fragments that can go, by one doorbell where the transport can do that. */
static int drive_firsts(struct ob1 *pml, struct ob1_peer *peer, uint32_t *busy)
{
    struct st_btl *btl = ob1_way(peer, 0)->btl;
    void (*batch)(struct st_btl * btl, bool on) = peer->first.next->next != &peer->first ? btl->ops->batch : NULL;
    int n;

    if (batch)
        batch(btl, true);
    n = ob1_coalesce(pml, peer) + drive_first(pml, &peer->first, busy);
    if (batch)
        batch(btl, false);
    return n;
}

static int drive_peer(struct ob1 *pml, struct ob1_peer *peer)
{
    uint32_t busy = 0;
    bool had_first = !st_list_empty(&peer->first);
    int n;

    if (!peer->bml) {
        int rc = ob1_peer_connect(pml, peer);
        if (rc == STRATA_ERR_AGAIN)
            return 0;
        if (rc != STRATA_OK) {
            if (!peer->failed)
                ob1_peer_fails(pml, peer->rank, rc, "it cannot be answered: no transport reaches it");
            return 0;
        }
    }
    n = peer->link ? ob1_link_pump(peer->link) : 0;
    n += drive_list(pml, &peer->control, &busy);
    n += had_first ? drive_firsts(pml, peer, &busy) : drive_first(pml, &peer->first, &busy);
    if (had_first)
        ob1_way(peer, 0)->caps &= ~(uint32_t)ST_BTL_CROWDED;
    n += drive_list(pml, &peer->rest, &busy);
    n += drive_list(pml, &peer->bulk, &busy);
    if (had_first && st_list_empty(&peer->first))
        ob1_peer_fast(peer);
    return n;
}

static int drive_blocked(struct ob1 *pml)
{
    struct st_node round;
    struct st_node *n;
    int events = 0;

    if (st_list_empty(&pml->blocked))
        return 0;
    round = pml->blocked;
    round.next->prev = round.prev->next = &round;
    st_list_init(&pml->blocked);
    while ((n = st_list_pop(&round)) != NULL) {
        struct ob1_peer *peer = ST_CONTAINER(n, struct ob1_peer, blocked);
        /* Stays marked while it is driven, so that work queued meanwhile does not link it a second time. */
        events += drive_peer(pml, peer);
        if (st_list_empty(&peer->control) && st_list_empty(&peer->first) && st_list_empty(&peer->rest) &&
            st_list_empty(&peer->bulk) && !(peer->link && ob1_link_pending(peer->link)))
            peer->is_blocked = false;
        else
            st_list_append(&pml->blocked, &peer->blocked);
    }
    return events;
}

int ob1_attend(void *arg)
{
    struct ob1 *pml = arg;
    int events;

    if (pml->fins.n)
        ob1_fins_send(pml);
    if (!st_list_empty(&pml->mending))
        ob1_links_mend(pml);
    events = drive_blocked(pml);
    if (st_list_empty(&pml->blocked) && pml->fins.n == 0)
        st_worker_calm(pml->head.worker, OB1_WORK);
    return events;
}
