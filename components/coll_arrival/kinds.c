/* Operations as blocks between members. A barrier is an alltoall of empty blocks. In an allgather, and
 * in an allreduce of short blocks, a member sends one block to all. A longer allreduce is two calls: an alltoallv of
 * pieces, which each member combines, and an allgatherv of the results. A bcast has blocks of the root alone. */
#include <stdlib.h>
#include <string.h>

#include "op.h"

bool arrival_kind_does(strata_coll_kind_t kind)
{
    return kind == STRATA_ALLTOALL || kind == STRATA_ALLTOALLV || kind == STRATA_ALLGATHER ||
           kind == STRATA_ALLGATHERV || kind == STRATA_ALLREDUCE || kind == STRATA_BCAST || kind == STRATA_BARRIER;
}

bool arrival_kind_in_two(const struct slot *s, const strata_coll_t *c)
{
    return c->kind == STRATA_ALLREDUCE && s->n > 1 && c->count * c->element > s->a->config.allreduce_once;
}

struct arrival_question arrival_kind_question(const struct slot *s, const strata_coll_t *c)
{
    bool differs = c->kind == STRATA_ALLTOALLV || c->kind == STRATA_ALLGATHERV;
    size_t bytes = differs || c->kind == STRATA_BARRIER ? 0 : c->count * c->element;
    return (struct arrival_question){.kind = c->kind, .bytes = bytes, .ranks = s->n, .nodes = s->n};
}

static int kind_lists(struct op *op)
{
    size_t n = (size_t)op->slot->n, *all = malloc(4 * n * sizeof(*all));
    if (!all)
        return STRATA_ERR_NOMEM;
    op->out_count = all;
    op->out_offset = all + n;
    op->in_count = all + 2 * n;
    op->in_offset = all + 3 * n;
    op->bytes += 4 * n * sizeof(*all);
    return STRATA_OK;
}

static int kind_alltoallv(struct op *op, const strata_coll_t *c)
{
    bool in_place = c->send == STRATA_IN_PLACE;
    size_t bytes = (size_t)op->slot->n * sizeof(size_t);
    int rc = kind_lists(op);
    if (rc != STRATA_OK)
        return rc;
    memcpy(op->out_count, in_place ? c->recv_counts : c->send_counts, bytes);
    memcpy(op->out_offset, in_place ? c->recv_offsets : c->send_offsets, bytes);
    memcpy(op->in_count, c->recv_counts, bytes);
    memcpy(op->in_offset, c->recv_offsets, bytes);
    return STRATA_OK;
}

/* The input in place of an alltoall is copied: what is to be sent may be received over before. */
static int kind_copy_input(struct op *op)
{
    size_t n = (size_t)op->slot->n, all = n * op->block;
    for (size_t i = 0; op->in_count && i < n; i++) {
        size_t end = (op->in_offset[i] + op->in_count[i]) * op->element;
        all = end > all ? end : all;
    }
    op->copy = malloc(all ? all : 1);
    if (!op->copy)
        return STRATA_ERR_NOMEM;
    if (all)
        memcpy(op->copy, op->to, all);
    op->from = op->copy;
    op->bytes += all;
    return STRATA_OK;
}

static int kind_rounds(struct op *op)
{
    const struct slot *s = op->slot;
    if (s->n < 2 || op->block == 0)
        return STRATA_OK;
    op->round_form = arrival_choose_rounds(&s->a->choice, &op->question);
    return op->round_form == FORM_NEXT ? STRATA_OK : arrival_rounds_make(op);
}

/* The same block for all members. */
static void kind_same(struct op *op, const char *from, size_t bytes)
{
    op->same = true;
    op->same_bytes = bytes;
    op->from = from;
}

static int kind_allgatherv(struct op *op, const strata_coll_t *c)
{
    int me = op->slot->base.group->comm->rank, rc = kind_lists(op);
    if (rc != STRATA_OK)
        return rc;
    size_t bytes = (size_t)op->slot->n * sizeof(size_t);
    memcpy(op->in_count, c->recv_counts, bytes);
    memcpy(op->in_offset, c->recv_offsets, bytes);
    kind_same(op, c->send == STRATA_IN_PLACE ? op->to + c->recv_offsets[me] * c->element : c->send,
              c->recv_counts[me] * c->element);
    return STRATA_OK;
}

int arrival_kind_set(struct op *op, const strata_coll_t *c)
{
    int me = op->slot->base.group->comm->rank, rc = STRATA_OK;
    bool in_place = c->send == STRATA_IN_PLACE;
    op->block = c->count * c->element;
    switch (c->kind) {
    case STRATA_ALLTOALLV:
        op->block = 0;
        rc = kind_alltoallv(op, c);
        return rc == STRATA_OK && in_place ? kind_copy_input(op) : rc;
    case STRATA_ALLTOALL:
        rc = in_place ? kind_copy_input(op) : STRATA_OK;
        return rc == STRATA_OK ? kind_rounds(op) : rc;
    case STRATA_ALLGATHERV:
        op->block = 0;
        return kind_allgatherv(op, c);
    case STRATA_ALLGATHER:
        kind_same(op, in_place ? op->to + (size_t)me * op->block : c->send, op->block);
        return STRATA_OK;
    case STRATA_ALLREDUCE:
        op->result = c->recv;
        kind_same(op, in_place ? c->recv : c->send, op->block);
        rc = arrival_combine_make(op, c, c->count);
        op->to = op->parts;
        return rc;
    case STRATA_BCAST:
        op->root = c->root;
        kind_same(op, c->recv, me == c->root ? op->block : 0);
        return STRATA_OK;
    default:
        op->block = 0;
        op->to = &op->nothing;
        kind_same(op, &op->nothing, 0);
        return STRATA_OK;
    }
}

/* First element of a member's piece. */
static size_t kind_piece(const struct op *op, size_t count, int m)
{
    size_t n = (size_t)op->slot->n, each = count / n, more = count % n, i = (size_t)m;
    return i * each + (i < more ? i : more);
}

int arrival_kind_halves(struct op *first, struct op *second, const strata_coll_t *c)
{
    int n = first->slot->n, me = first->slot->base.group->comm->rank, rc = kind_lists(first);
    size_t mine = kind_piece(first, c->count, me + 1) - kind_piece(first, c->count, me);
    if (rc == STRATA_OK)
        rc = arrival_combine_make(first, c, mine);
    if (rc == STRATA_OK)
        rc = kind_lists(second);
    if (rc != STRATA_OK)
        return rc;
    for (int m = 0; m < n; m++) {
        size_t at = kind_piece(first, c->count, m), count = kind_piece(first, c->count, m + 1) - at;
        first->out_count[m] = second->in_count[m] = count;
        first->out_offset[m] = second->in_offset[m] = at;
        first->in_count[m] = mine;
        first->in_offset[m] = (size_t)m * mine;
    }
    first->from = c->send == STRATA_IN_PLACE ? c->recv : c->send;
    first->to = first->parts;
    kind_same(second, arrival_combined(first), mine * c->element);
    second->before = first;
    return STRATA_OK;
}
