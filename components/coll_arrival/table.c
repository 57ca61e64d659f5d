/* A user's table of forms: one line, one rule. */
#include "table.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/line_file.h>

const char *const arrival_forms[] = {"direct", "pap_direct", "shm_direct", "pap_shm_direct", "auto",
                                     "bruck",  "pap_bruck",  "doubling",   "pap_doubling",   NULL};

static const struct {
    const char *name;
    strata_coll_kind_t kind;
} kinds[] = {{"barrier", STRATA_BARRIER},     {"bcast", STRATA_BCAST},           {"allreduce", STRATA_ALLREDUCE},
             {"allgather", STRATA_ALLGATHER}, {"allgatherv", STRATA_ALLGATHERV}, {"alltoall", STRATA_ALLTOALL},
             {"alltoallv", STRATA_ALLTOALLV}};

static bool table_kind(const char *name, strata_coll_kind_t *kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *kind = kinds[i].kind;
            return true;
        }
    return false;
}

static bool table_form(const char *name, enum arrival_form *form)
{
    for (int i = 0; i < ARRIVAL_FORMS; i++)
        if (i != FORM_AUTO && strcmp(arrival_forms[i], name) == 0) {
            *form = (enum arrival_form)i;
            return true;
        }
    *form = FORM_NEXT;
    return strcmp(name, "next") == 0;
}

/* A number from `least` to `most`, or "-", which is `any`. */
static bool table_number(const char *text, uint64_t least, uint64_t most, uint64_t any, uint64_t *value)
{
    char *end;
    if (strcmp(text, "-") == 0) {
        *value = any;
        return true;
    }
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    *value = v;
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && v >= least && v <= most;
}

static bool table_rule(const char *line, struct arrival_rule *r)
{
    char kind[16], ranks[24], nodes[24], bytes[24], skew[24], form[20], end[2];
    uint64_t n_ranks, n_nodes, n_bytes;
    if (sscanf(line, "%15s %23s %23s %23s %23s %19s %1s", kind, ranks, nodes, bytes, skew, form, end) != 6 ||
        !table_kind(kind, &r->kind) || !table_form(form, &r->form) ||
        !table_number(ranks, 1, INT_MAX, INT_MAX, &n_ranks) || !table_number(nodes, 1, INT_MAX, INT_MAX, &n_nodes) ||
        !table_number(bytes, 0, SIZE_MAX, SIZE_MAX, &n_bytes) ||
        !table_number(skew, 0, 1000000000, UINT64_MAX, &r->skew_us))
        return false;
    r->ranks = (int)n_ranks;
    r->nodes = (int)n_nodes;
    r->bytes = (size_t)n_bytes;
    return r->form != FORM_NEXT || (r->nodes == INT_MAX && r->skew_us == UINT64_MAX);
}

struct table_rules {
    struct arrival_rule *v;
    size_t n;
};

/* Adds the rule of a line; false: it has something else, or there is no memory. */
static bool table_line(void *arg, const char *line)
{
    struct table_rules *rules = arg;
    struct arrival_rule rule, *more;
    if (!table_rule(line, &rule) || !(more = realloc(rules->v, (rules->n + 1) * sizeof(*more))))
        return false;
    rules->v = more;
    more[rules->n++] = rule;
    return true;
}

int arrival_table_read(const char *path, struct arrival_rule **rules, size_t *n, char *why, size_t why_size)
{
    struct table_rules read = {NULL, 0};
    int rc = st_line_file_read(path, table_line, &read, "OPERATION RANKS NODES BYTES SKEW FORM that there are", why,
                               why_size);
    if (rc != STRATA_OK) {
        free(read.v);
        return rc;
    }
    *rules = read.v;
    *n = read.n;
    return STRATA_OK;
}
