/* Operations in log2(ranks) rounds: barrier, allreduce by recursive doubling, scan. */
#include "build.h"

void basic_barrier(struct schedule *s)
{
    int n = s->comm->size, rank = s->comm->rank;
    for (int d = 1; d < n; d <<= 1) {
        basic_recv(s, (rank - d + n) % n, NULL, 0);
        basic_send(s, (rank + d) % n, NULL, 0);
        basic_wait(s);
    }
}

/* Folds ranks 2i and 2i+1 until a power of two is left, then doubles; order is kept throughout. */
void basic_allreduce_doubling(struct schedule *s)
{
    int n = s->comm->size, rank = s->comm->rank, power = 1;
    size_t bytes = s->c.count * s->c.element;
    char *mine = basic_memory(s, bytes), *other = basic_memory(s, bytes), *swap;
    if (!mine || !other)
        return;
    basic_copy(s, mine, s->c.send == STRATA_IN_PLACE ? s->c.recv : s->c.send, bytes);
    while (2 * power <= n)
        power *= 2;
    int folded = 2 * (n - power), v = rank < folded ? rank / 2 : rank - folded / 2;
    if (rank < folded && rank % 2 == 0) {
        basic_send(s, rank + 1, mine, bytes);
        basic_wait(s);
        basic_recv(s, rank + 1, s->c.recv, bytes);
        basic_wait(s);
        return;
    }
    if (rank < folded) {
        basic_recv(s, rank - 1, other, bytes);
        basic_wait(s);
        basic_reduce(s, other, mine, bytes);
    }
    for (int bit = 1; bit < power; bit <<= 1) {
        int w = v ^ bit, peer = w < folded / 2 ? 2 * w + 1 : w + folded / 2;
        basic_recv(s, peer, other, bytes);
        basic_send(s, peer, mine, bytes);
        basic_wait(s);
        if (w < v) {
            basic_reduce(s, other, mine, bytes);
            continue;
        }
        basic_reduce(s, mine, other, bytes);
        swap = mine;
        mine = other;
        other = swap;
    }
    if (rank < folded)
        basic_send(s, rank - 1, mine, bytes);
    basic_copy(s, s->c.recv, mine, bytes);
    basic_wait(s);
}

void basic_scan(struct schedule *s)
{
    int n = s->comm->size, rank = s->comm->rank;
    size_t bytes = s->c.count * s->c.element;
    char *mine = basic_memory(s, bytes), *other = basic_memory(s, bytes);
    if (!mine || !other)
        return;
    basic_copy(s, mine, s->c.send == STRATA_IN_PLACE ? s->c.recv : s->c.send, bytes);
    for (int d = 1; d < n; d <<= 1) {
        if (rank >= d)
            basic_recv(s, rank - d, other, bytes);
        if (rank + d < n)
            basic_send(s, rank + d, mine, bytes);
        basic_wait(s);
        if (rank >= d)
            basic_reduce(s, other, mine, bytes);
    }
    basic_copy(s, s->c.recv, mine, bytes);
}
