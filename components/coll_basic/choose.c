/* Choice of algorithms, and the table that replaces it. */
#include "choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/line_file.h>

static const char *const kinds[STRATA_COLL_KINDS] = {"barrier",
                                                     "bcast",
                                                     "reduce",
                                                     "allreduce",
                                                     "gather",
                                                     "scatter",
                                                     "allgather",
                                                     "allgatherv",
                                                     "alltoall",
                                                     "alltoallv",
                                                     "reduce_scatter_block",
                                                     "scan"};
static const char *const algorithms[BASIC_ALGORITHMS] = {"tree",     "doubling", "ring",  "bruck",
                                                         "pairwise", "linear",   "leader"};

const char *basic_kind_name(strata_coll_kind_t kind)
{
    return kinds[kind];
}

#define BIT(a) (1u << (a))

bool basic_can(strata_coll_kind_t kind, enum basic_algorithm a, bool commutative)
{
    static const unsigned can[STRATA_COLL_KINDS] = {
        [STRATA_BARRIER] = BIT(BASIC_BRUCK),
        [STRATA_BCAST] = BIT(BASIC_TREE) | BIT(BASIC_RING),
        [STRATA_REDUCE] = BIT(BASIC_TREE),
        [STRATA_ALLREDUCE] = BIT(BASIC_DOUBLING) | BIT(BASIC_RING),
        [STRATA_GATHER] = BIT(BASIC_LINEAR),
        [STRATA_SCATTER] = BIT(BASIC_LINEAR),
        [STRATA_ALLGATHER] = BIT(BASIC_BRUCK) | BIT(BASIC_RING),
        [STRATA_ALLGATHERV] = BIT(BASIC_RING),
        [STRATA_ALLTOALL] = BIT(BASIC_BRUCK) | BIT(BASIC_PAIRWISE),
        [STRATA_ALLTOALLV] = BIT(BASIC_PAIRWISE),
        [STRATA_REDUCE_SCATTER_BLOCK] = BIT(BASIC_TREE) | BIT(BASIC_PAIRWISE),
        [STRATA_SCAN] = BIT(BASIC_DOUBLING),
    };
    bool reorders =
        (kind == STRATA_ALLREDUCE && a == BASIC_RING) || (kind == STRATA_REDUCE_SCATTER_BLOCK && a == BASIC_PAIRWISE);
    return (can[kind] & BIT(a)) && (commutative || !reorders);
}

static enum basic_algorithm choose_default(strata_coll_kind_t kind, size_t bytes, int ranks, bool commutative)
{
    switch (kind) {
    case STRATA_BCAST:
        return bytes > (256u << 10) && ranks > 2 ? BASIC_RING : BASIC_TREE;
    case STRATA_REDUCE:
        return BASIC_TREE;
    case STRATA_ALLREDUCE:
        return bytes > (64u << 10) && ranks > 2 && commutative ? BASIC_RING : BASIC_DOUBLING;
    case STRATA_SCAN:
        return BASIC_DOUBLING;
    case STRATA_GATHER:
    case STRATA_SCATTER:
        return BASIC_LINEAR;
    case STRATA_ALLGATHER:
        return bytes > (8u << 10) ? BASIC_RING : BASIC_BRUCK;
    case STRATA_ALLGATHERV:
        return BASIC_RING;
    case STRATA_ALLTOALL:
        return bytes > 256 || ranks < 4 ? BASIC_PAIRWISE : BASIC_BRUCK;
    case STRATA_ALLTOALLV:
        return BASIC_PAIRWISE;
    case STRATA_REDUCE_SCATTER_BLOCK:
        return commutative ? BASIC_PAIRWISE : BASIC_TREE;
    default:
        return BASIC_BRUCK;
    }
}

/* The first rule that fits, or NULL. */
static const struct basic_rule *choose_rule(const struct basic_table *t, strata_coll_kind_t kind, bool inter,
                                            size_t bytes, int ranks, bool commutative)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct basic_rule *r = &t->rules[i];
        if (r->kind == kind && r->inter == inter && ranks <= r->ranks && bytes <= r->bytes &&
            (inter || basic_can(kind, r->algorithm, commutative)))
            return r;
    }
    return NULL;
}

bool basic_can_inter(strata_coll_kind_t kind, enum basic_algorithm a)
{
    switch (kind) {
    case STRATA_BARRIER:
    case STRATA_ALLREDUCE:
        return a == BASIC_LINEAR || a == BASIC_LEADER;
    case STRATA_BCAST:
    case STRATA_REDUCE:
    case STRATA_GATHER:
    case STRATA_SCATTER:
        return a == BASIC_LINEAR;
    case STRATA_SCAN:
        return false;
    default:
        return a == BASIC_PAIRWISE;
    }
}

enum basic_algorithm basic_choose_inter(const struct basic_table *t, strata_coll_kind_t kind, size_t bytes, int ranks)
{
    const struct basic_rule *r = choose_rule(t, kind, true, bytes, ranks, true);
    if (r)
        return r->algorithm;
    if (basic_can_inter(kind, BASIC_LEADER) && ranks > 8)
        return BASIC_LEADER;
    return basic_can_inter(kind, BASIC_LINEAR) ? BASIC_LINEAR : BASIC_PAIRWISE;
}

enum basic_algorithm basic_choose(const struct basic_table *t, strata_coll_kind_t kind, size_t bytes, int ranks,
                                  bool commutative)
{
    const struct basic_rule *r = choose_rule(t, kind, false, bytes, ranks, commutative);
    if (r)
        return r->algorithm;
    return choose_default(kind, bytes, ranks, commutative);
}

static int choose_find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

#define INTER "inter_" /* begins the name of an operation between groups */

/* Adds the rule of a line; false: it has something else. */
static bool table_line(void *arg, const char *line)
{
    struct basic_table *t = arg;
    char kind[32], algorithm[16], end[2];
    int ranks;
    unsigned long long bytes;
    if (sscanf(line, "%31s %d %llu %15s %1s", kind, &ranks, &bytes, algorithm, end) != 4)
        return false;
    bool inter = strncmp(kind, INTER, strlen(INTER)) == 0;
    int k = choose_find(kinds, STRATA_COLL_KINDS, inter ? kind + strlen(INTER) : kind);
    int a = choose_find(algorithms, BASIC_ALGORITHMS, algorithm);
    if (k < 0 || a < 0 || ranks < 1 ||
        !(inter ? basic_can_inter((strata_coll_kind_t)k, (enum basic_algorithm)a)
                : basic_can((strata_coll_kind_t)k, (enum basic_algorithm)a, true)))
        return false;
    struct basic_rule *more = realloc(t->rules, (t->n + 1) * sizeof(*more));
    if (!more)
        return false;
    t->rules = more;
    t->rules[t->n++] = (struct basic_rule){.kind = (strata_coll_kind_t)k,
                                           .inter = inter,
                                           .ranks = ranks,
                                           .bytes = (size_t)bytes,
                                           .algorithm = (enum basic_algorithm)a};
    return true;
}

int basic_table_read(const char *path, struct basic_table *t, char *why, size_t why_size)
{
    *t = (struct basic_table){NULL, 0};
    int rc = st_line_file_read(path, table_line, t, "OPERATION RANKS BYTES ALGORITHM of algorithms that there are", why,
                               why_size);
    if (rc != STRATA_OK) {
        free(t->rules);
        *t = (struct basic_table){NULL, 0};
    }
    return rc;
}
