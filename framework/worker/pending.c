/* Pending work. Per peer control messages go first, then first fragments, then the rest of streams, then bulk; each in
 * order, so that a message gets done before the next takes the cache. A path that is busy is not tried again in the
 * same round. */
#include "framework/worker/lane.h"

static int pending_run(struct worker *w, struct st_work *work)
{
    return work->ops->run(w->clients[work->ops->am].arg, work);
}

/* Runs each item of the list once; what is not finished goes back, in order. Returns how many moved. */
static int pending_drive_list(struct worker *w, struct st_node *list, uint32_t *busy)
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
        struct st_work *work = ST_CONTAINER(n, struct st_work, node);
        uint32_t bit = 1u << (work->path + (work->rdma ? ST_BML_MAX_PATHS : 0));
        int rc = *busy & bit ? STRATA_ERR_AGAIN : pending_run(w, work);
        if (rc == STRATA_ERR_AGAIN)
            *busy |= bit;
        else
            moved++;
        if (rc != STRATA_OK)
            st_list_append(list, n);
    }
    return moved;
}

static int pending_drive_firsts(struct worker *w, struct st_peer *peer, uint32_t *busy)
{
    int n = 0;
    for (unsigned bits = peer->firsts; bits; bits &= bits - 1) {
        unsigned am = (unsigned)__builtin_ctz(bits);
        const struct st_client *c = w->clients[am].row;
        if (c && c->firsts)
            n += c->firsts(w->clients[am].arg, peer, busy);
        else
            peer->firsts &= (uint8_t) ~(1u << am);
    }
    return n;
}

void worker_pending_drop(struct worker *w, struct st_peer *peer)
{
    struct st_node *n;
    peer->firsts = 0;
    for (int i = 0; i < ST_WORK_QUEUES; i++)
        while ((n = st_list_pop(&peer->work[i])) != NULL) {
            struct st_work *work = ST_CONTAINER(n, struct st_work, node);
            work->ops->drop(w->clients[work->ops->am].arg, work, peer->failed);
        }
}

static int pending_drive_peer(struct worker *w, struct st_peer *peer)
{
    uint32_t busy = 0;
    if (peer->failed) { /* queued after it was dealt with */
        worker_pending_drop(w, peer);
        return 0;
    }
    if (!peer->bml) {
        int rc = st_worker_connect(&w->head, peer);
        if (rc != STRATA_OK) {
            if (rc != STRATA_ERR_AGAIN && !peer->failed)
                st_worker_peer_failed(&w->head, peer->rank, rc, "it cannot be answered: no transport reaches it");
            return 0;
        }
    }
    int n = peer->lane ? lane_pump(peer->lane) : 0;
    n += pending_drive_list(w, &peer->work[ST_WORK_CONTROL], &busy);
    n += pending_drive_firsts(w, peer, &busy);
    n += pending_drive_list(w, &peer->work[ST_WORK_REST], &busy);
    n += pending_drive_list(w, &peer->work[ST_WORK_BULK], &busy);
    return n;
}

static bool pending_has_work(const struct st_peer *peer)
{
    for (int i = 0; i < ST_WORK_QUEUES; i++)
        if (!st_list_empty(&peer->work[i]))
            return true;
    return peer->firsts || (peer->lane && lane_pending(peer->lane));
}

int worker_pending_run(struct worker *w)
{
    struct st_node round;
    struct st_node *n;
    int events = 0;
    if (st_list_empty(&w->pending))
        return 0;
    round = w->pending;
    round.next->prev = round.prev->next = &round;
    st_list_init(&w->pending);
    while ((n = st_list_pop(&round)) != NULL) {
        struct st_peer *peer = ST_CONTAINER(n, struct st_peer, pending);
        /* Stays marked while it is driven, so that work queued meanwhile does not put it into the list twice. */
        events += pending_drive_peer(w, peer);
        if (pending_has_work(peer))
            st_list_append(&w->pending, &peer->pending);
        else
            peer->is_pending = false;
    }
    if (st_list_empty(&w->pending))
        st_worker_calm(&w->head, WORKER_PENDING);
    return events;
}
