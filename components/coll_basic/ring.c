/* Allreduce over a ring: each part of the block goes round once to be combined and once to be told. */
#include "build.h"

/* Where part i of n begins. */
static size_t ring_begin(const strata_coll_t *c, int i, int n)
{
    return (c->count / (size_t)n * (size_t)i + c->count % (size_t)n * (size_t)i / (size_t)n) * c->element;
}

void basic_allreduce_ring(struct schedule *s)
{
    const strata_coll_t *c = &s->c;
    int n = s->comm->size, rank = s->comm->rank, next = (rank + 1) % n, prev = (rank + n - 1) % n;
    char *all = c->recv, *other = basic_memory(s, (c->count / (size_t)n + 1) * c->element);
    if (!other)
        return;
    if (c->send != STRATA_IN_PLACE)
        basic_copy(s, all, c->send, c->count * c->element);
    for (int k = 0; k < 2 * (n - 1); k++) {
        bool combines = k < n - 1;
        /* After n - 1 rounds a rank has the result of part rank + 1, which is the next in turn. */
        int out = (rank + 2 * n - k) % n, in = (out + n - 1) % n;
        size_t from = ring_begin(c, in, n), bytes = ring_begin(c, in + 1, n) - from, at = ring_begin(c, out, n);
        basic_recv(s, prev, combines ? other : all + from, bytes);
        basic_send(s, next, all + at, ring_begin(c, out + 1, n) - at);
        basic_wait(s);
        if (combines)
            basic_reduce(s, other, all + from, bytes);
    }
}
