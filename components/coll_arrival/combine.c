/* The reduction of an allreduce: a tree over the ranks whose shape depends on their number alone, so that all members
 * combine the same values in the same order. A node is combined as soon as both halves of it are here: when the last
 * block comes, at most log2(n) combinations are left (paper, section 7: what early members can do, they have done). */
#include <stdlib.h>

#include "op.h"

enum { MOST_LEVELS = 32 };

int arrival_combine_make(struct op *op, const strata_coll_t *c, size_t count)
{
    size_t n = (size_t)op->slot->n, bytes = count * c->element, all = n * bytes;
    op->parts = malloc(all > 0 ? all : 1);
    op->have = calloc(2 * n + MOST_LEVELS, 1);
    if (!op->parts || !op->have)
        return STRATA_ERR_NOMEM;
    op->reduce = c->reduce;
    op->reduce_arg = c->reduce_arg;
    op->part_count = count;
    op->part = bytes;
    op->bytes += all + 2 * n + MOST_LEVELS;
    return STRATA_OK;
}

/* Where the combination of a node is: at the last of its ranks. */
static char *combine_at(const struct op *op, size_t node, unsigned level)
{
    size_t n = (size_t)op->slot->n, end = (node + 1) << level;
    return op->parts + ((end < n ? end : n) - 1) * op->part;
}

void arrival_combine(struct op *op, int m)
{
    unsigned char *have = op->have;
    size_t node = (size_t)m, width = (size_t)op->slot->n;
    for (unsigned level = 0; width > 1; level++) {
        size_t left = node & ~(size_t)1, other = node ^ 1;
        if (other < width) {
            if (!have[other]) {
                have[node] = 1;
                return;
            }
            if (op->part_count > 0)
                op->reduce(op->reduce_arg, combine_at(op, left, level), combine_at(op, left + 1, level),
                           op->part_count);
        }
        have += width;
        node >>= 1;
        width = (width + 1) / 2;
    }
}

const char *arrival_combined(const struct op *op)
{
    return op->parts + ((size_t)op->slot->n - 1) * op->part;
}
