/* Operations: made, queued, completed. */
#include "op.h"

#include <stdlib.h>
#include <string.h>

#include <strata/sdk/worker.h>

static void op_free(strata_coll_request_t *req)
{
    struct op *op = (struct op *)req;
    struct sm *sm = op->slot->sm;
    st_worker_lock(sm->w); /* whoever completed it has left it */
    sm->bytes -= op->bytes;
    st_worker_unlock(sm->w);
    free((void *)(uintptr_t)op->c.recv_counts);
    free(op->copy);
    free(op);
}

/* Lists are read by the call that starts an operation only, and this one may wait. */
static int op_copy_lists(struct op *op, size_t n)
{
    const size_t **from[] = {&op->c.recv_counts, &op->c.recv_offsets, &op->c.send_counts, &op->c.send_offsets};
    size_t *all;
    if (op->c.kind != STRATA_ALLGATHERV && op->c.kind != STRATA_ALLTOALLV) {
        op->c.recv_counts = NULL;
        return STRATA_OK;
    }
    all = calloc(4 * n, sizeof(*all));
    if (!all) {
        op->c.recv_counts = NULL;
        return STRATA_ERR_NOMEM;
    }
    bool sends = op->c.kind == STRATA_ALLTOALLV && op->c.send != STRATA_IN_PLACE;
    for (size_t i = 0; i < (sends ? 4u : 2u); i++) {
        memcpy(all + i * n, *from[i], n * sizeof(*all));
        *from[i] = all + i * n;
    }
    op->bytes += 4 * n * sizeof(*all);
    return STRATA_OK;
}

/* An alltoall in place that others may read is to stay as it is until they have. */
static int op_copy_input(struct op *op)
{
    const struct slot *s = op->slot;
    size_t block = op->c.count * op->c.element, all = block * (size_t)s->n;
    if (op->c.kind != STRATA_ALLTOALL || op->c.send != STRATA_IN_PLACE || all == 0 || block < s->sm->config.read_min ||
        block > s->sm->config.largest[SM_ALLTOALL])
        return STRATA_OK;
    op->copy = malloc(all);
    if (!op->copy)
        return STRATA_ERR_NOMEM;
    memcpy(op->copy, op->c.recv, all);
    op->bytes += all;
    return STRATA_OK;
}

int cs_op_make(struct slot *s, const strata_coll_t *c, struct op **out)
{
    struct op *op = calloc(1, sizeof(*op) + (size_t)s->n);
    if (!op)
        return STRATA_ERR_NOMEM;
    op->head.worker = s->sm->w;
    op->head.free = op_free;
    op->head.failed = -1;
    op->slot = s;
    op->c = *c;
    op->bytes = sizeof(*op) + (size_t)s->n;
    if (op_copy_lists(op, (size_t)s->n) != STRATA_OK || op_copy_input(op) != STRATA_OK) {
        free((void *)(uintptr_t)op->c.recv_counts);
        free(op);
        return STRATA_ERR_NOMEM;
    }
    *out = op;
    return STRATA_OK;
}

static enum sm_kind op_kind(strata_coll_kind_t kind)
{
    switch (kind) {
    case STRATA_BARRIER:
        return SM_BARRIER;
    case STRATA_BCAST:
        return SM_BCAST;
    case STRATA_REDUCE:
        return SM_REDUCE;
    case STRATA_ALLREDUCE:
        return SM_ALLREDUCE;
    case STRATA_ALLGATHER:
        return SM_ALLGATHER;
    case STRATA_ALLTOALL:
        return SM_ALLTOALL;
    default:
        return SM_OPS;
    }
}

bool cs_op_fits(const struct slot *s, const strata_coll_t *c)
{
    enum sm_kind kind = op_kind(c->kind);
    if (kind == SM_OPS || s->sm->config.largest[kind] == 0)
        return false;
    if (kind == SM_BARRIER)
        return true;
    return c->count * c->element <= s->sm->config.largest[kind] && c->element <= s->half && (size_t)s->n <= s->half;
}

void cs_op_append(struct op *op)
{
    st_list_append(&op->slot->ops, &op->node);
    op->slot->sm->counted[COUNT_CALLS]++;
    if (op->slot->ops.next == &op->node)
        cs_step_first(op);
}

void cs_op_complete(struct op *op, int error, int failed)
{
    struct slot *s = op->slot;
    op->head.error = error;
    op->head.failed = failed;
    if (error != STRATA_OK)
        st_log(s->sm->base.context, ST_LOG_ERROR, "coll_sm", "a collective on communicator %u ended: %s: rank %d",
               (unsigned)s->base.group->comm->id, strata_strerror(error), failed);
    atomic_store_explicit(&op->head.done, true, memory_order_release);
    if (s->sm->w->threaded)
        st_worker_wake(s->sm->w);
}

static int op_end_all(struct slot *s, struct st_node *list)
{
    int events = 0, failed = atomic_load(&s->base.group->failed);
    if (s->own.at) { /* a late member may still read here: it sees the mark if it sees what the caller writes next */
        atomic_store_explicit(&s->own.at->ended, failed + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
    }
    while (!st_list_empty(list)) {
        struct op *op = ST_CONTAINER(list->next, struct op, node);
        st_list_remove(&op->node);
        cs_op_complete(op, STRATA_ERR_PEER, failed);
        events++;
    }
    return events;
}

int cs_op_progress(struct slot *s)
{
    int events = 0;
    bool complete = true;
    /* While the cards are under way, or a thread works on the slot outside the lock, an operation keeps it from being
     * freed. */
    if (slot_failed(s))
        return op_end_all(s, &s->ops) + (s->stage == SLOT_CARDS || s->outside ? 0 : op_end_all(s, &s->queue));
    while (complete && !st_list_empty(&s->ops)) {
        struct op *op = ST_CONTAINER(s->ops.next, struct op, node);
        complete = false;
        events += cs_step_run(op, &complete);
        if (!complete)
            break;
        st_list_remove(&op->node);
        if (!st_list_empty(&s->ops))
            cs_step_first(ST_CONTAINER(s->ops.next, struct op, node));
        cs_op_complete(op, STRATA_OK, -1);
    }
    return events;
}

void cs_op_watch(struct slot *s)
{
    struct sm *sm = s->sm;
    bool busy = !st_list_empty(&s->ops) || !st_list_empty(&s->queue) || !st_list_empty(&s->below) || s->cards_req;
    if (busy == s->counted)
        return;
    s->counted = busy;
    int active = atomic_fetch_add_explicit(&sm->active, busy ? 1 : -1, memory_order_relaxed) + (busy ? 1 : -1);
    st_coll_attend(&sm->base, active > 0);
}
