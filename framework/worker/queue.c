/* Queues of pending work (run by pending.c). */
#include "framework/worker/worker.h"

void worker_pending_add(struct worker *w, struct st_peer *peer)
{
    if (!peer->is_pending)
        st_list_append(&w->pending, &peer->pending);
    peer->is_pending = true;
    /* Also when the bit is set already: a thread that sleeps has not asked for the room that this has met none of. */
    st_worker_attend(&w->head, WORKER_PENDING);
}

void st_worker_queue(struct st_worker *w, struct st_peer *peer, enum st_work_queue queue, struct st_work *work)
{
    st_list_append(&peer->work[queue], &work->node);
    worker_pending_add(worker_of(w), peer);
}

void st_worker_firsts(struct st_worker *w, struct st_peer *peer, enum st_am am)
{
    peer->firsts |= (uint8_t)(1u << am);
    worker_pending_add(worker_of(w), peer);
}
