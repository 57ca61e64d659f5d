/* Binomial trees of bcast and reduce, and the chain of long bcasts. */
#include "build.h"

/* Bytes that a chain passes on at a time; more of a long block, each segment of which has its requests. */
enum { SEGMENT = 128 << 10, SEGMENTS_MOST = 1024 };

static void bcast_chain(struct schedule *s, char *buf, size_t bytes, int v, int n)
{
    int next = (s->comm->rank + 1) % n, prev = (s->comm->rank + n - 1) % n;
    size_t segment = bytes / SEGMENTS_MOST < SEGMENT ? SEGMENT : bytes / SEGMENTS_MOST + 1;
    for (size_t at = 0, len; at < bytes; at += len) {
        len = bytes - at < segment ? bytes - at : segment;
        if (v > 0) {
            basic_recv(s, prev, buf + at, len);
            basic_wait(s); /* for what was sent on before, too: that is under way while this comes */
        }
        if (v < n - 1)
            basic_send(s, next, buf + at, len);
    }
}

void basic_bcast(struct schedule *s, enum basic_algorithm a)
{
    int n = s->comm->size, v = (s->comm->rank - s->c.root + n) % n, bit = 1;
    size_t bytes = s->c.count * s->c.element;
    if (a == BASIC_RING) {
        bcast_chain(s, s->c.recv, bytes, v, n);
        return;
    }
    while (bit < n && !(v & bit))
        bit <<= 1;
    if (v != 0) {
        basic_recv(s, (v - bit + s->c.root) % n, s->c.recv, bytes);
        basic_wait(s);
    }
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (v + bit < n)
            basic_send(s, (v + bit + s->c.root) % n, s->c.recv, bytes);
    basic_wait(s);
}

/* The partial result of a rank is always of neighbouring ranks, its own the lowest. The tree of what is not commutative
 * has rank 0 at its top, which passes the result on. */
void basic_reduce_to(struct schedule *s, const void *in, void *out, size_t bytes, int root)
{
    int n = s->comm->size, top = s->c.not_commutative ? 0 : root, v = (s->comm->rank - top + n) % n;
    char *mine = basic_memory(s, bytes), *other = basic_memory(s, bytes);
    if (!mine || !other)
        return;
    basic_copy(s, mine, in, bytes);
    for (int bit = 1; bit < n; bit <<= 1) {
        if (v & bit) {
            basic_send(s, (v - bit + top) % n, mine, bytes);
            basic_wait(s);
            break;
        }
        if (v + bit >= n)
            continue;
        basic_recv(s, (v + bit + top) % n, other, bytes);
        basic_wait(s);
        basic_reduce(s, mine, other, bytes);
        char *swap = mine;
        mine = other;
        other = swap;
    }
    if (v == 0 && root == s->comm->rank)
        basic_copy(s, out, mine, bytes);
    else if (v == 0)
        basic_send(s, root, mine, bytes);
    else if (root == s->comm->rank)
        basic_recv(s, 0, out, bytes);
    basic_wait(s);
}
