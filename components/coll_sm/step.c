/* Steps: each member fills its buffer of the step and posts it, takes what it needs of the others as they post, and
 * says that it is done; its own block is copied last. A buffer is filled again two steps later, when all others are
 * done with it: nobody runs ahead further. Members that arrive late hold up only what needs their data. */
#include "op.h"

/* Bytes of a block in one step; a multiple of an element. */
static size_t step_chunk(const struct op *op)
{
    const struct slot *s = op->slot;
    size_t half = s->half, element = op->c.element;
    if (op->read || op->block == 0)
        return op->block;
    if (op->c.kind == STRATA_ALLTOALL) {
        half /= (size_t)s->n;
        return half >= 64 ? half / 64 * 64 : half;
    }
    return half / element * element;
}

void cs_step_first(struct op *op)
{
    const struct slot *s = op->slot;
    bool may_read = op->c.kind == STRATA_BCAST || op->c.kind == STRATA_ALLGATHER || op->c.kind == STRATA_ALLTOALL;
    op->block = op->c.kind == STRATA_BARRIER ? 0 : op->c.count * op->c.element;
    op->read = may_read && s->reads && op->block >= s->sm->config.read_min && op->block > 0;
    op->chunk = step_chunk(op);
}

/* Whether all others have a counter of at least so much. */
static bool step_all_done(const struct slot *s, uint64_t least)
{
    for (int m = 0; m < s->n; m++)
        if (m != s->me && atomic_load_explicit(&s->member[m].at->done, memory_order_acquire) < least)
            return false;
    return true;
}

static bool step_posted(const struct slot *s, int m)
{
    return atomic_load_explicit(&s->member[m].at->posted, memory_order_acquire) > s->step;
}

static void step_post(struct op *op)
{
    struct slot *s = op->slot;
    cs_kind_produce(op);
    atomic_store_explicit(&s->own.at->posted, s->step + 1, memory_order_release);
    op->posted = true;
    op->left = 0;
    for (int m = 0; m < s->n; m++) {
        op->taken[m] = !cs_kind_needs(op, m);
        op->left += !op->taken[m];
    }
    s->sm->counted[COUNT_STEPS]++;
}

/* This member has taken what it needs of the others: they may return, and fill the buffers again. */
static void step_done(const struct slot *s)
{
    atomic_store_explicit(&s->own.at->done, s->step + 1, memory_order_release);
}

static int step_take(struct op *op)
{
    struct slot *s = op->slot;
    int events = 0, n_posted = 0;
    for (int k = 1; k <= s->n && op->left > 0; k++) { /* each begins with another; the own block is last */
        int m = (s->me + k) % s->n;
        if (op->taken[m] || !step_posted(s, m))
            continue;
        n_posted++;
        if (cs_kind_of_all(op))
            continue;
        if (m == s->me && op->left == 1)
            step_done(s);
        if (!cs_kind_consume(op, m)) {
            if (slot_failed(s)) /* the operation has ended, and its memory is the caller's again */
                return events;
            continue;
        }
        op->taken[m] = 1;
        op->left--;
        events++;
    }
    if (op->left > 0 && cs_kind_of_all(op) && n_posted == op->left) {
        cs_kind_consume_all(op);
        op->left = 0;
        events++;
    }
    return events;
}

/* The next step of the operation, if there is one. An allreduce of long blocks has two for each part. */
static bool step_next(struct op *op)
{
    op->posted = false;
    if (op->c.kind == STRATA_ALLREDUCE && op->block > op->slot->sm->config.direct_max && !op->second) {
        op->second = true;
        return true;
    }
    op->second = false;
    op->offset += op_part(op);
    return op->offset < op->block;
}

static bool step_lends(const struct op *op)
{
    return op->read && (op->c.kind != STRATA_BCAST || op->c.root == op->slot->me);
}

int cs_step_run(struct op *op, bool *complete)
{
    struct slot *s = op->slot;
    int events = 0;
    op->room = OP_TURN;
    while (!op->leaving && op->room > 0) {
        if (!op->posted) {
            if (s->step > 0 && !step_all_done(s, s->step - 1))
                break;
            step_post(op);
            events++;
        }
        events += step_take(op);
        if (op->left > 0)
            break;
        step_done(s);
        s->step++;
        if (!step_next(op))
            op->leaving = true;
    }
    *complete = op->leaving && (!step_lends(op) || step_all_done(s, s->step));
    return events + *complete + (op->room < OP_TURN); /* also where a block was moved in part */
}
