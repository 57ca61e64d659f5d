/* Operations in which every rank has a block for others: linear, ring, Bruck's and pairwise exchanges. */
#include "build.h"

/* The operation, as the builders of this file see it. */
struct exchange {
    struct schedule *s;
    int n, rank;
    size_t bytes; /* of a block */
    const char *in;
    char *out;
    bool in_place;
};

static void exchange_gather(const struct exchange *x, int root)
{
    if (x->rank != root) {
        basic_send(x->s, root, x->in, x->bytes);
        return;
    }
    for (int i = 0; i < x->n; i++)
        if (i != root)
            basic_recv(x->s, i, x->out + (size_t)i * x->bytes, x->bytes);
    if (!x->in_place)
        basic_copy(x->s, x->out + (size_t)root * x->bytes, x->in, x->bytes);
}

static void exchange_scatter(const struct exchange *x, const char *from, int root)
{
    if (x->rank != root) {
        basic_recv(x->s, root, x->out, x->bytes);
        return;
    }
    for (int i = 0; i < x->n; i++)
        if (i != root)
            basic_send(x->s, i, from + (size_t)i * x->bytes, x->bytes);
    if ((const void *)x->out != STRATA_IN_PLACE)
        basic_copy(x->s, x->out, from + (size_t)root * x->bytes, x->bytes);
}

static void allgather_bruck(const struct exchange *x)
{
    size_t bytes = x->bytes;
    char *all = basic_memory(x->s, (size_t)x->n * bytes);
    if (!all)
        return;
    basic_copy(x->s, all, x->in_place ? x->out + (size_t)x->rank * bytes : x->in, bytes);
    for (int have = 1, more; have < x->n; have += more) {
        more = have < x->n - have ? have : x->n - have;
        basic_recv(x->s, (x->rank + have) % x->n, all + (size_t)have * bytes, (size_t)more * bytes);
        basic_send(x->s, (x->rank - have + x->n) % x->n, all, (size_t)more * bytes);
        basic_wait(x->s);
    }
    for (int i = 0; i < x->n; i++)
        basic_copy(x->s, x->out + (size_t)((x->rank + i) % x->n) * bytes, all + (size_t)i * bytes, bytes);
}

/* Block i of an allgather or allgatherv. */
static char *exchange_block(const struct exchange *x, int i, size_t *bytes)
{
    const strata_coll_t *c = &x->s->c;
    bool differs = c->kind == STRATA_ALLGATHERV;
    *bytes = differs ? c->recv_counts[i] * c->element : x->bytes;
    return x->out + (differs ? c->recv_offsets[i] * c->element : (size_t)i * x->bytes);
}

static void allgather_ring(const struct exchange *x)
{
    int n = x->n;
    size_t bytes;
    char *own = exchange_block(x, x->rank, &bytes);
    if (!x->in_place)
        basic_copy(x->s, own, x->in, bytes);
    for (int k = 0; k < n - 1; k++) {
        char *block = exchange_block(x, (x->rank - k - 1 + n) % n, &bytes);
        basic_recv(x->s, (x->rank - 1 + n) % n, block, bytes);
        block = exchange_block(x, (x->rank - k + n) % n, &bytes);
        basic_send(x->s, (x->rank + 1) % n, block, bytes);
        basic_wait(x->s);
    }
}

static void alltoall_bruck(const struct exchange *x)
{
    size_t bytes = x->bytes, all = (size_t)x->n * bytes;
    char *block = basic_memory(x->s, all), *leaves = basic_memory(x->s, all), *comes = basic_memory(x->s, all);
    if (!block || !leaves || !comes)
        return;
    for (int i = 0; i < x->n; i++)
        basic_copy(x->s, block + (size_t)i * bytes, x->in + (size_t)((x->rank + i) % x->n) * bytes, bytes);
    for (int bit = 1; bit < x->n; bit <<= 1) {
        size_t k = 0;
        for (int i = bit; i < x->n; i++)
            if (i & bit)
                basic_copy(x->s, leaves + k++ * bytes, block + (size_t)i * bytes, bytes);
        basic_recv(x->s, (x->rank - bit + x->n) % x->n, comes, k * bytes);
        basic_send(x->s, (x->rank + bit) % x->n, leaves, k * bytes);
        basic_wait(x->s);
        k = 0;
        for (int i = bit; i < x->n; i++)
            if (i & bit)
                basic_copy(x->s, block + (size_t)i * bytes, comes + k++ * bytes, bytes);
    }
    for (int i = 0; i < x->n; i++)
        basic_copy(x->s, x->out + (size_t)((x->rank - i + x->n) % x->n) * bytes, block + (size_t)i * bytes, bytes);
}

/* Each step has one partner to send to and one to receive from. */
static void alltoall_pairwise(const struct exchange *x)
{
    const strata_coll_t *c = &x->s->c;
    bool v = c->kind == STRATA_ALLTOALLV;
    size_t e = c->element, b = x->bytes;
    const size_t *counts = x->in_place ? c->recv_counts : c->send_counts;
    const size_t *offsets = x->in_place ? c->recv_offsets : c->send_offsets;
    for (int k = 0; k < x->n; k++) {
        int to = (x->rank + k) % x->n, from = (x->rank - k + x->n) % x->n;
        const char *in = x->in + (v ? offsets[to] * e : (size_t)to * b);
        char *out = x->out + (v ? c->recv_offsets[from] * e : (size_t)from * b);
        if (k == 0) {
            basic_copy(x->s, out, in, v ? c->recv_counts[from] * e : b);
            continue;
        }
        basic_recv(x->s, from, out, v ? c->recv_counts[from] * e : b);
        basic_send(x->s, to, in, v ? counts[to] * e : b);
        basic_wait(x->s);
    }
}

/* The input in place is copied: what is to be sent may be received over before. */
static void alltoall_take(struct exchange *x)
{
    const strata_coll_t *c = &x->s->c;
    size_t all = (size_t)x->n * x->bytes;
    if (!x->in_place)
        return;
    if (c->kind == STRATA_ALLTOALLV) {
        all = 0;
        for (int i = 0; i < x->n; i++) {
            size_t end = (c->recv_offsets[i] + c->recv_counts[i]) * c->element;
            all = end > all ? end : all;
        }
    }
    char *copy = basic_memory(x->s, all);
    if (copy)
        basic_copy(x->s, copy, x->out, all);
    x->in = copy ? copy : x->out; /* never started without memory */
}

static void reduce_scatter_pairwise(const struct exchange *x)
{
    char *mine = basic_memory(x->s, x->bytes), *other = basic_memory(x->s, x->bytes);
    if (!mine || !other)
        return;
    basic_copy(x->s, mine, x->in + (size_t)x->rank * x->bytes, x->bytes);
    for (int k = 1; k < x->n; k++) {
        int to = (x->rank + k) % x->n;
        basic_recv(x->s, (x->rank - k + x->n) % x->n, other, x->bytes);
        basic_send(x->s, to, x->in + (size_t)to * x->bytes, x->bytes);
        basic_wait(x->s);
        basic_reduce(x->s, other, mine, x->bytes);
    }
    basic_copy(x->s, x->out, mine, x->bytes);
}

static void reduce_scatter_tree(const struct exchange *x)
{
    size_t all = (size_t)x->n * x->bytes;
    char *result = basic_memory(x->s, x->rank == 0 ? all : 0);
    if (!result)
        return;
    basic_reduce_to(x->s, x->in, result, all, 0);
    exchange_scatter(x, result, 0);
}

void basic_exchange(struct schedule *s, enum basic_algorithm a)
{
    const strata_coll_t *c = &s->c;
    struct exchange x = {.s = s, .n = s->comm->size, .rank = s->comm->rank, .bytes = c->count * c->element};
    x.in_place = c->send == STRATA_IN_PLACE;
    x.in = x.in_place ? c->recv : c->send;
    x.out = c->recv;
    switch (c->kind) {
    case STRATA_GATHER:
        exchange_gather(&x, c->root);
        break;
    case STRATA_SCATTER:
        exchange_scatter(&x, c->send, c->root);
        break;
    case STRATA_ALLGATHER:
    case STRATA_ALLGATHERV:
        if (a == BASIC_BRUCK)
            allgather_bruck(&x);
        else
            allgather_ring(&x);
        break;
    case STRATA_REDUCE_SCATTER_BLOCK:
        if (a == BASIC_PAIRWISE)
            reduce_scatter_pairwise(&x);
        else
            reduce_scatter_tree(&x);
        break;
    default:
        alltoall_take(&x);
        if (a == BASIC_BRUCK)
            alltoall_bruck(&x);
        else
            alltoall_pairwise(&x);
        break;
    }
}
