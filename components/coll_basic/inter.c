/* Operations between two groups: what one group gives, the other gets. Messages go from group to group only, since
 * those of an intercommunicator do. */
#include "build.h"

/* The operation, as the builders of this file see it. */
struct inter {
    struct schedule *s;
    int n, own, rank; /* members of the other group and of the own one; mine there */
    int rounds;       /* of an exchange of all with all: members of the larger group */
    size_t bytes;     /* of a block */
    const char *in;
    char *out;
};

/* Partners of a round, at most one to send to and one to receive from; -1: none. Sender and receiver of a message come
 * to it in the same round. */
static int inter_to(const struct inter *x, int round)
{
    int peer = (x->rank + round) % x->rounds;
    return peer < x->n ? peer : -1;
}

static int inter_from(const struct inter *x, int round)
{
    int peer = (x->rank - round + x->rounds) % x->rounds;
    return peer < x->n ? peer : -1;
}

/* A block's place in a buffer, in bytes. */
struct part {
    size_t at, bytes;
};

static struct part inter_sent(const struct inter *x, int to)
{
    const strata_coll_t *c = &x->s->c;
    if (c->kind == STRATA_ALLTOALLV)
        return (struct part){c->send_offsets[to] * c->element, c->send_counts[to] * c->element};
    return (struct part){c->kind == STRATA_ALLTOALL ? (size_t)to * x->bytes : 0, x->bytes};
}

static struct part inter_received(const struct inter *x, int from)
{
    const strata_coll_t *c = &x->s->c;
    if (c->kind == STRATA_ALLTOALLV || c->kind == STRATA_ALLGATHERV)
        return (struct part){c->recv_offsets[from] * c->element, c->recv_counts[from] * c->element};
    return (struct part){(size_t)from * x->bytes, x->bytes};
}

static void inter_exchange(const struct inter *x)
{
    for (int k = 0; k < x->rounds; k++) {
        int to = inter_to(x, k), from = inter_from(x, k);
        if (from >= 0) {
            struct part p = inter_received(x, from);
            basic_recv(x->s, from, x->out + p.at, p.bytes);
        }
        if (to >= 0) {
            struct part p = inter_sent(x, to);
            basic_send(x->s, to, x->in + p.at, p.bytes);
        }
        basic_wait(x->s);
    }
}

/* Combines a block of each member of the other group at `out`. Member i of the other group gets `sent` bytes at
 * in + i * step. `ordered`: by rank, the highest first, so that one member of each group sends in a round; else all
 * send in each round, and members combine in orders that differ. */
static void inter_combine(const struct inter *x, size_t step, size_t sent, bool ordered)
{
    char *other = basic_memory(x->s, x->bytes);
    bool first = true;
    for (int k = 0; k < x->rounds && other; k++) {
        int from = ordered ? x->n - 1 - k : inter_from(x, k), to = inter_to(x, k);
        if (from >= 0)
            basic_recv(x->s, from, first ? x->out : other, x->bytes);
        for (int i = 0; i < x->n; i++)
            if (ordered ? x->rank == x->own - 1 - k : i == to)
                basic_send(x->s, i, x->in + (size_t)i * step, sent);
        basic_wait(x->s);
        if (from >= 0 && !first)
            basic_reduce(x->s, other, x->out, x->bytes);
        first = first && from < 0;
    }
}

/* Member 0 of each group combines what the other group gives and hands the result to the other group's member 0, which
 * sends it to the group that it is for. In the last round of combining the two have a message for each other. */
static void inter_combine_by_leaders(const struct inter *x)
{
    if (x->rank != 0) {
        basic_recv(x->s, 0, x->out, x->bytes);
        basic_send(x->s, 0, x->in, x->bytes);
        return;
    }
    char *other = basic_memory(x->s, x->bytes);
    if (!other)
        return;
    for (int from = x->n - 1; from >= 0; from--) {
        bool first = from == x->n - 1;
        basic_recv(x->s, from, first ? x->out : other, x->bytes);
        if (from == 0)
            basic_send(x->s, 0, x->in, x->bytes);
        basic_wait(x->s);
        if (!first)
            basic_reduce(x->s, other, x->out, x->bytes);
    }
    basic_recv(x->s, 0, other, x->bytes);
    basic_send(x->s, 0, x->out, x->bytes);
    basic_wait(x->s);
    for (int i = 1; i < x->n; i++)
        basic_send(x->s, i, other, x->bytes);
}

/* The root has messages to or from all of the other group, which has one each; the root's fellows have none. */
static void inter_rooted(const struct inter *x, strata_coll_kind_t kind, int root)
{
    bool gives = kind == STRATA_BCAST || kind == STRATA_SCATTER; /* the root */
    const char *in = kind == STRATA_BCAST ? x->out : x->in;
    if (root >= 0 && gives)
        basic_recv(x->s, root, x->out, x->bytes);
    else if (root >= 0)
        basic_send(x->s, root, x->in, x->bytes);
    for (int i = 0; i < x->n && root == STRATA_ROOT; i++) {
        size_t at = kind == STRATA_BCAST ? 0 : (size_t)i * x->bytes;
        if (gives)
            basic_send(x->s, i, in + at, x->bytes);
        else
            basic_recv(x->s, i, x->out + at, x->bytes);
    }
}

static void inter_reduce(const struct inter *x, int root)
{
    if (root >= 0)
        basic_send(x->s, root, x->in, x->bytes);
    char *other = root == STRATA_ROOT ? basic_memory(x->s, x->bytes) : NULL;
    for (int from = x->n - 1; from >= 0 && other; from--) {
        bool first = from == x->n - 1;
        basic_recv(x->s, from, first ? x->out : other, x->bytes);
        basic_wait(x->s);
        if (!first)
            basic_reduce(x->s, other, x->out, x->bytes);
    }
}

void basic_inter(struct schedule *s, enum basic_algorithm a)
{
    const strata_coll_t *c = &s->c;
    struct inter x = {.s = s, .n = s->comm->size, .own = s->group->n_local, .rank = s->comm->rank};
    x.rounds = x.n > x.own ? x.n : x.own;
    if (c->kind != STRATA_BARRIER) { /* which is an allreduce of nothing */
        x.bytes = c->count * c->element;
        x.in = c->send;
        x.out = c->recv;
    }
    switch (c->kind) {
    case STRATA_BARRIER:
    case STRATA_ALLREDUCE:
        if (a == BASIC_LEADER)
            inter_combine_by_leaders(&x);
        else
            inter_combine(&x, 0, x.bytes, true); /* all combine in the same order, to the same result */
        break;
    case STRATA_REDUCE_SCATTER_BLOCK: {
        size_t sent = c->count * (size_t)x.own / (size_t)x.n * c->element;
        inter_combine(&x, sent, sent, c->not_commutative != 0);
        break;
    }
    case STRATA_REDUCE:
        inter_reduce(&x, c->root);
        break;
    case STRATA_BCAST:
    case STRATA_GATHER:
    case STRATA_SCATTER:
        inter_rooted(&x, c->kind, c->root);
        break;
    default:
        inter_exchange(&x);
        break;
    }
}
