/* The component: parameters, start, what it hands the worker's events to. */
#include <stddef.h>
#include <stdlib.h>

#include <strata/sdk/worker.h>
#include "op.h"

/* Begins what can be begun of a slot; with the lock held, which it gives back meanwhile. */
static int sm_look(struct slot *s)
{
    cs_agree_look(s);
    int events = cs_op_progress(s);
    if ((s->cards_req && atomic_load_explicit(&s->cards_req->done, memory_order_acquire)) ||
        !st_list_empty(&s->below) || (s->stage >= SLOT_READY && !st_list_empty(&s->queue)))
        st_worker_news(s->sm->w); /* sm_outside */
    cs_op_watch(s);
    return events;
}

static int sm_start_now(struct slot *s, const strata_coll_t *c, strata_coll_request_t **out)
{
    struct op *op;
    int rc = cs_op_make(s, c, &op);
    if (rc != STRATA_OK)
        return rc;
    *out = &op->head;
    st_worker_lock(s->sm->w);
    s->sm->bytes += op->bytes;
    cs_op_append(op);
    (void)sm_look(s);
    st_worker_unlock(s->sm->w);
    return STRATA_OK;
}

/* Before the members have agreed, every kind: the next component sees them in the order in which they were started. */
static int sm_start_later(struct slot *s, bool first, const strata_coll_t *c, strata_coll_request_t **out)
{
    strata_coll_request_t *cards = NULL;
    struct op *op;
    int rc = cs_op_make(s, c, &op);
    if (rc != STRATA_OK)
        return rc;
    if (first && (rc = cs_agree_begin(s, &cards)) != STRATA_OK) {
        op->bytes = 0;
        op->head.free(&op->head);
        return rc;
    }
    *out = &op->head;
    st_worker_lock(s->sm->w);
    s->sm->bytes += op->bytes;
    if (first) {
        s->stage = SLOT_CARDS;
        s->cards_req = cards;
    }
    st_list_append(&s->queue, &op->node);
    (void)sm_look(s);
    st_worker_unlock(s->sm->w);
    return STRATA_OK;
}

static int sm_start(struct st_coll_slot *base, const strata_coll_t *c, strata_coll_request_t **out)
{
    struct slot *s = (struct slot *)base;
    if (s->n == 0)
        return STRATA_ERR_UNSUPPORTED;
    st_worker_lock(s->sm->w);
    cs_agree_look(s);
    bool agreed = s->stage >= SLOT_READY && st_list_empty(&s->queue) && !s->outside, ready = s->stage == SLOT_READY;
    bool first = s->stage == SLOT_NEW;
    st_worker_unlock(s->sm->w);
    if (!agreed)
        return sm_start_later(s, first, c, out);
    return ready && cs_op_fits(s, c) ? sm_start_now(s, c, out) : STRATA_ERR_UNSUPPORTED;
}

static void sm_failed(struct st_coll_slot *base)
{
    struct slot *s = (struct slot *)base;
    (void)sm_look(s);
}

static int sm_attend(struct st_coll *coll)
{
    struct sm *sm = (struct sm *)coll;
    int events = 0;
    for (struct st_node *n = sm->slots.next, *next; n != &sm->slots; n = next) {
        struct slot *s = ST_CONTAINER(n, struct slot, node);
        next = n->next;
        if (s->counted)
            events += sm_look(s);
    }
    return events;
}

/* ---- what is done without the lock ---- */

/* The first of the queue, by areas or below. With the lock held but while it starts there. */
static void sm_outside_queue(struct slot *s)
{
    struct sm *sm = s->sm;
    struct op *op = ST_CONTAINER(s->queue.next, struct op, node);
    st_list_remove(&op->node);
    if (s->stage == SLOT_READY && cs_op_fits(s, &op->c) && !slot_failed(s)) {
        cs_op_append(op);
        return;
    }
    st_worker_unlock(sm->w);
    int rc = st_coll_start_below(&s->base, &op->c, &op->inner);
    st_worker_lock(sm->w);
    sm->counted[COUNT_BELOW]++;
    if (rc == STRATA_OK) {
        st_list_append(&s->below, &op->node);
        return;
    }
    cs_op_complete(op, rc, -1);
    if (rc != STRATA_ERR_UNSUPPORTED) /* the others have started it, or will: they would wait for this member */
        st_coll_member_failed_locked(s->base.group, s->me);
}

static struct op *sm_ended_below(const struct slot *s)
{
    for (struct st_node *n = s->below.next; n != &s->below; n = n->next) {
        struct op *op = ST_CONTAINER(n, struct op, node);
        if (atomic_load_explicit(&op->inner->done, memory_order_acquire))
            return op;
    }
    return NULL;
}

static void sm_outside_below(struct slot *s, struct op *op)
{
    strata_coll_request_t *inner = op->inner;
    int error = inner->error, failed = inner->failed;
    st_list_remove(&op->node);
    st_worker_unlock(s->sm->w);
    inner->free(inner);
    st_worker_lock(s->sm->w);
    cs_op_complete(op, error, failed);
}

/* One thing for a slot; false: there is nothing. With the lock held, which it gives back meanwhile. The slot may be
 * freed by another thread once its last operation is complete and the lock is free. */
static bool sm_outside_one(struct slot *s)
{
    struct op *below = sm_ended_below(s);
    bool cards = s->cards_req && atomic_load_explicit(&s->cards_req->done, memory_order_acquire);
    bool queue = s->stage >= SLOT_READY && !st_list_empty(&s->queue);
    if (s->outside || (!below && !cards && !queue))
        return false;
    s->outside = true;
    if (cards) {
        st_worker_unlock(s->sm->w);
        cs_agree_outside(s);
        st_worker_lock(s->sm->w);
    } else if (queue) {
        sm_outside_queue(s);
    } else {
        sm_outside_below(s, below);
    }
    s->outside = false;
    (void)sm_look(s);
    return true;
}

static void sm_outside(struct st_coll *coll)
{
    struct sm *sm = (struct sm *)coll;
    if (atomic_load_explicit(&sm->active, memory_order_relaxed) == 0) /* a look without the lock */
        return;
    st_worker_lock(sm->w);
    for (bool again = true; again;) {
        again = false;
        for (struct st_node *n = sm->slots.next; n != &sm->slots && !again; n = n->next)
            again = sm_outside_one(ST_CONTAINER(n, struct slot, node));
    }
    st_worker_unlock(sm->w);
}

/* ---- the module ---- */

static void sm_mem_report(struct st_coll *coll, st_mem_line_fn line, void *arg)
{
    const struct sm *sm = (const struct sm *)coll;
    strata_mem_line_t areas = {.component = "coll_sm", .category = "areas", .bytes = sm->area_bytes, .shared = 1};
    strata_mem_line_t other = {.component = "coll_sm", .category = "other", .bytes = sizeof(*sm) + sm->bytes};
    if (areas.bytes)
        line(arg, &areas);
    line(arg, &other);
}

static void sm_count(const struct st_counting *counting, uint64_t *value)
{
    const struct sm *sm = ST_CONTAINER(counting, const struct sm, counting);
    for (int i = 0; i < SM_N_COUNTERS; i++)
        value[i] += sm->counted[i];
}

static void sm_close(struct st_coll *coll)
{
    struct sm *sm = (struct sm *)coll;
    st_counters_remove(coll->context, &sm->counting);
    free(sm);
}

static const struct st_coll_ops ops = {.attach = cs_slot_attach,
                                       .detach = cs_slot_detach,
                                       .start = sm_start,
                                       .failed = sm_failed,
                                       .attend = sm_attend,
                                       .outside = sm_outside,
                                       .mem_report = sm_mem_report,
                                       .close = sm_close};

static int sm_open(strata_t *s, const struct st_component *component, const void *config, struct st_worker *worker,
                   struct st_coll **out)
{
    struct sm *sm = calloc(1, sizeof(*sm));
    if (!sm)
        return STRATA_ERR_NOMEM;
    sm->base = (struct st_coll){.ops = &ops, .context = s};
    sm->w = worker;
    sm->config = *(const struct config *)config;
    st_list_init(&sm->slots);
    sm->counting = (struct st_counting){.component = component, .count = sm_count};
    st_counters_add(s, &sm->counting);
    *out = &sm->base;
    return STRATA_OK;
}

#define AT(field) offsetof(struct config, field)
#define LARGEST(name, kind, size)                                                                                      \
    {                                                                                                                  \
        name, ST_PARAM_SIZE, AT(largest[kind]), size, 0, 1e12, "bytes",                                                \
            "Longest block of the operation served by this component; the same at all ranks; 0: none.", 5, NULL        \
    }

static const struct st_param params[] = {
    {"ranks", ST_PARAM_INT, AT(ranks), "64", 0, 1 << 20, "ranks",
     "Largest communicator served by this component; the same at all ranks; 0: none.", 4, NULL},
    {"buffer", ST_PARAM_SIZE, AT(half), "32k", 4096, 1 << 28, "bytes",
     "A member has two buffers of this size in each communicator.", 5, NULL},
    {"memory", ST_PARAM_SIZE, AT(memory), "4m", 0, 1e12, "bytes",
     "Maximum shared memory of a process for the buffers of all communicators; further communicators use the next "
     "component.",
     4, NULL},
    {"read_min", ST_PARAM_SIZE, AT(read_min), "16k", 1, 1e12, "bytes",
     "Shortest block that receivers read from the sender's memory instead of from a buffer; the same at all ranks.", 5,
     NULL},
    {"readers", ST_PARAM_INT, AT(readers), "4", 1, 1 << 20, "ranks",
     "Maximum number of members that read one member's memory at a time: they contend for a lock of the kernel.", 6,
     NULL},
    {"direct_max", ST_PARAM_SIZE, AT(direct_max), "1k", 0, 1e12, "bytes",
     "Longest block of an allreduce that each member combines completely; of longer ones each member combines a part. "
     "The same at all ranks.",
     6, NULL},
    LARGEST("barrier", SM_BARRIER, "1"),
    LARGEST("bcast", SM_BCAST, "900g"),
    LARGEST("reduce", SM_REDUCE, "900g"),
    LARGEST("allreduce", SM_ALLREDUCE, "900g"),
    LARGEST("allgather", SM_ALLGATHER, "900g"),
    LARGEST("alltoall", SM_ALLTOALL, "900g"),
};

static const struct st_coll_component_ops component_ops = {.open = sm_open};

ST_COMPONENT(coll, sm) = {
    ST_COMPONENT_HEAD("coll", "sm", "0.1.0", "collectives of one machine straight over shared memory"),
    .ops_size = sizeof(component_ops),
    .priority = 30,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct config),
    .ops = &component_ops,
    .counters = cs_counters,
    .n_counters = SM_N_COUNTERS,
};
