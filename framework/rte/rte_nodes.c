/* Nodes for experiments: the operations of an rte with another answer to who is local. */
#include "framework/rte/rte_nodes.h"

#include <stdlib.h>

struct nodes {
    struct st_rte_ops ops;         /* those of the rte, but for the ones of this file */
    const struct st_rte_ops *real; /* the rte's own */
    int n;
    int local[]; /* ascending */
};

static struct nodes *nodes_of(const struct st_rte *rte)
{
    return (struct nodes *)(uintptr_t)rte->ops;
}

static bool nodes_is_local(struct st_rte *rte, int rank)
{
    const struct nodes *nodes = nodes_of(rte);
    int low = 0, high = nodes->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (nodes->local[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < nodes->n && nodes->local[low] == rank;
}

static const int *nodes_local_ranks(struct st_rte *rte, int *n)
{
    const struct nodes *nodes = nodes_of(rte);
    *n = nodes->n;
    return nodes->local;
}

static void nodes_close(struct st_rte *rte)
{
    struct nodes *nodes = nodes_of(rte);
    rte->ops = nodes->real;
    free(nodes);
    rte->ops->close(rte);
}

/* The next number of the text, or the last one again; 0: not a text of numbers. */
static int nodes_next(const char **text, int last)
{
    char *end;
    if (!**text)
        return last;
    if (**text < '0' || **text > '9')
        return 0;
    long v = strtol(*text, &end, 10);
    if (v < 1 || v > 1 << 24 || (*end && *end != ',') || (*end == ',' && !end[1]))
        return 0;
    *text = *end ? end + 1 : end;
    return (int)v;
}

int st_rte_divide(struct st_rte *rte, const char *text)
{
    int n_local = 0, mine = 0, size = 0, first = 0, begin = 0, here = 0;
    if (!text || !*text)
        return STRATA_OK;
    const int *local = rte->ops->local_ranks(rte, &n_local);
    while (mine < n_local && local[mine] != rte->rank)
        mine++;
    do { /* the whole text is read, so that a mistake is one at all ranks */
        size = nodes_next(&text, size);
        if (size == 0)
            return STRATA_ERR_PARAM;
        if (first <= mine) {
            begin = first;
            here = size;
        }
        first = first > mine ? first : first + size;
    } while (first <= mine || *text);
    if (here > n_local - begin)
        here = n_local - begin;
    struct nodes *nodes = malloc(sizeof(*nodes) + (size_t)here * sizeof(nodes->local[0]));
    if (!nodes)
        return STRATA_ERR_NOMEM;
    nodes->real = rte->ops;
    nodes->ops = *rte->ops;
    nodes->ops.is_local = nodes_is_local;
    nodes->ops.local_ranks = nodes_local_ranks;
    nodes->ops.close = nodes_close;
    nodes->n = here;
    for (int i = 0; i < here; i++)
        nodes->local[i] = local[begin + i];
    rte->ops = &nodes->ops;
    return STRATA_OK;
}
