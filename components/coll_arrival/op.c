/* Calls: made, begun in turn, completed. */
#include "op.h"

#include <stdlib.h>
#include <string.h>

#include <strata/sdk/clock.h>
#include "in.h"

static void op_free_memory(struct op *op)
{
    free(op->copy);
    free(op->out_count);
    free(op->in);
    free(op->crate);
    free(op->rows);
    free(op->taken);
    free(op->parts);
    free(op->have);
    free(op);
}

static void op_free(strata_coll_request_t *req)
{
    struct op *op = (struct op *)req, *before = op->before;
    struct slot *s = op->slot;
    st_worker_lock(s->a->w); /* whoever completed it has left it */
    s->a->bytes -= op->bytes + (before ? before->bytes : 0);
    st_worker_unlock(s->a->w);
    if (before)
        op_free_memory(before);
    op_free_memory(op);
}

void op_discard(struct op *op)
{
    if (op->before)
        op_free_memory(op->before);
    op_free_memory(op);
}

/* One without blocks yet, or NULL. */
static struct op *op_new(struct slot *s, const strata_coll_t *c)
{
    size_t n = (size_t)s->n, n_all = (size_t)s->n_all;
    struct op *op = calloc(1, sizeof(*op) + n_all * sizeof(op->out[0]));
    if (!op)
        return NULL;
    op->in = calloc(n_all, sizeof(*op->in));
    op->crate = s->nodes ? calloc(n, sizeof(*op->crate)) : NULL;
    op->taken = s->nodes ? calloc(n, 1) : NULL;
    if (!op->in || (s->nodes && (!op->crate || !op->taken))) {
        op_free_memory(op);
        return NULL;
    }
    op->head.worker = s->a->w;
    op->head.free = op_free;
    op->head.failed = -1;
    op->slot = s;
    op->root = op->source = -1;
    op->question = arrival_kind_question(s, c);
    op->element = c->element;
    op->from = c->send;
    op->to = c->recv;
    op->bytes = sizeof(*op) + n_all * (sizeof(op->out[0]) + sizeof(*op->in));
    op->bytes += s->nodes ? n * (sizeof(*op->crate) + 1) : 0;
    for (int i = 0; i < s->n_all; i++) {
        op->out[i].op = op;
        op->out[i].to = i;
    }
    return op;
}

int op_make(struct slot *s, const strata_coll_t *c, struct op **out)
{
    bool two = arrival_kind_in_two(s, c);
    struct op *op = op_new(s, c), *first = two ? op_new(s, c) : NULL;
    int rc = STRATA_ERR_NOMEM;
    if (op && (first || !two))
        rc = two ? arrival_kind_halves(first, op, c) : arrival_kind_set(op, c);
    if (rc == STRATA_OK) {
        *out = op;
        return STRATA_OK;
    }
    if (op)
        op_free_memory(op);
    if (first)
        op_free_memory(first);
    return rc;
}

static void op_append_one(struct op *op)
{
    op->slot->a->bytes += op->bytes;
    st_list_append(&op->slot->ops, &op->node);
}

void op_append(struct op *op)
{
    if (op->before)
        op_append_one(op->before);
    op_append_one(op);
}

static struct op *op_first(const struct slot *s)
{
    return st_list_empty(&s->ops) ? NULL : ST_CONTAINER(s->ops.next, struct op, node);
}

struct op *op_current(const struct slot *s)
{
    struct op *op = op_first(s);
    return op && op->begun ? op : NULL;
}

/* Bytes of the own block that are copied in one turn: the worker's lock is held, and nothing else moves. */
enum { OWN_TURN = 4 << 20 };

static void op_find_own(struct op *op)
{
    int me = op->slot->base.group->comm->rank;
    size_t out = op_out_bytes(op, me), in = op_in_bytes(op, me);
    op->own_from = op_out_at(op, me);
    op->own_to = op_in_at(op, me);
    if (op->own_from != op->own_to && !op->copy) /* else it is there */
        op->own_left = out < in ? out : in;
}

/* Once when the call has begun and others have been sent what they wait for, then in rounds of progress while something
 * is left: a call whose group has failed before does not end well. */
static void op_copy_own(struct op *op)
{
    size_t part = op->own_left < OWN_TURN ? op->own_left : OWN_TURN;
    if (part > 0 && slot_failed(op->slot))
        return;
    if (part > 0) {
        memcpy(op->own_to, op->own_from, part);
        op->own_from += part;
        op->own_to += part;
        op->own_left -= part;
    }
    if (op->own_left == 0)
        op_came(op, op->slot->base.group->comm->rank);
}

static void op_begin(struct op *op)
{
    struct slot *s = op->slot;
    op->begun = true;
    if (s->a->config.form == FORM_AUTO)
        op->since = st_now_ns();
    s->a->counted[COUNT_CALLS]++;
    if (op->before)
        op->error = op->before->head.error;
    if (s->nodes && s->nodes->stage == NODES_AGREED && s->nodes->limit > 0) /* release: pairs with shm_is_free */
        atomic_store_explicit(&node_line(s->nodes, node_local(s->nodes, s->base.group->comm->rank))->begun, s->call + 1,
                              memory_order_release);
    arrival_route(op);
    for (int i = 0; i < s->n_all; i++) {
        op->outs_left += op->out[i].state != OUT_DONE;
        op->ins_left += !op->in[i].done;
    }
    op_find_own(op);
    if (slot_failed(s) || s->n == 1)
        return;
    if (!s->begun)
        slot_make_cells(s);
    if (op->rows && arrival_form_has_rounds(op->form) && slot_is_even(s))
        arrival_rounds_begin(op);
    in_advertise(op, 0);
    if (!op->rounds)
        out_begin(op, 0);
    in_take_cells(op, 0);
}

/* In a group that has failed: nothing of it moves any more, here or by a put of a living member. */
static bool op_is_quiet(const struct op *op)
{
    if (op->busy > 0)
        return false;
    for (int i = 0; i < op->slot->n_all; i++)
        if (op->in[i].put && !op->in[i].done && !op->slot->member[i].peer->failed)
            return false;
    return true;
}

/* The members that get the block of a bcast from this one have been told of the call's beginning. */
static void op_told(const struct op *op)
{
    struct slot *s = op->slot;
    for (int m = 0; op->root >= 0 && m < s->n; m++)
        if (arrival_sends(op, m))
            s->member[m].told = s->call + 1;
}

static bool op_end(struct op *op)
{
    struct slot *s = op->slot;
    bool complete = op->outs_left == 0 && op->ins_left == 0 && op->shm_left == 0 && op->busy == 0 && op->own_left == 0;
    int failed = atomic_load(&s->base.group->failed);
    if (!complete && !(failed >= 0 && op_is_quiet(op)))
        return false;
    for (int i = 0; i < s->n_all; i++)
        if (op->in[i].has_reg)
            op->in[i].btl->rdma->dereg(op->in[i].btl, &op->in[i].reg);
    out_end(op);
    if (complete && op->result && op->part > 0)
        memcpy(op->result, arrival_combined(op), op->part);
    s->member[s->base.group->comm->rank].came[s->epoch & 1u].waited = s->waited;
    op_told(op);
    slot_next_epoch(s, op->root >= 0 ? REACH_ROOT : op->rounds ? REACH_BEGUN : REACH_ALL);
    s->waited = op->since ? (uint8_t)arrival_skew_class(st_now_ns() - op->since) : 0;
    st_list_remove(&op->node);
    op->head.error = complete ? op->error : STRATA_ERR_PEER;
    op->head.failed = complete ? -1 : failed;
    if (op->head.error != STRATA_OK)
        st_log(s->a->base.context, ST_LOG_ERROR, "coll_arrival", "a collective on communicator %u ended: %s: rank %d",
               (unsigned)s->base.group->comm->id, strata_strerror(op->head.error),
               complete ? s->base.group->comm->rank : failed);
    atomic_store_explicit(&op->head.done, true, memory_order_release); /* freed behind the lock at the earliest */
    if (s->a->w->threaded)
        st_worker_wake(s->a->w);
    return true;
}

/* Whether the slot has something to look at; keeps the worker asking. */
static void op_watch(struct slot *s)
{
    struct arrival *a = s->a;
    const struct op *op = op_current(s);
    bool busy = (s->nodes && s->nodes->cards_req) || (op && ((op->shm && op->shm_left > 0) || op->own_left > 0));
    if (busy == s->counted)
        return;
    s->counted = busy;
    int active = atomic_fetch_add_explicit(&a->active, busy ? 1 : -1, memory_order_relaxed) + (busy ? 1 : -1);
    st_coll_attend(&a->base, active > 0 || a->lost);
}

void op_check(struct slot *s)
{
    struct op *op;
    while ((op = op_first(s)) != NULL && slot_ready(s)) {
        if (!op->begun) {
            op_begin(op);
            op_copy_own(op);
        }
        if (op->shm && op->shm_left + op->ins_left > 0 && !slot_failed(s))
            arrival_shm_progress(op);
        if (op->rounds && op->outs_left > 0 && !slot_failed(s))
            out_rounds(op);
        if (op->piece > 0 && op->outs_left > 0 && !slot_failed(s))
            out_pieces(op);
        if (!op_end(op))
            break;
    }
    op_watch(s);
}

int op_turn(struct slot *s)
{
    struct op *op = op_current(s);
    bool copies = op && op->own_left > 0 && !slot_failed(s);
    if (copies)
        op_copy_own(op);
    op_check(s);
    return copies;
}
