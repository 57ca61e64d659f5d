/* Lists of strata-perf coll on the command line. */
#include "coll_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[PERF_COLL_OPS] = {[PERF_COLL_ALLTOALL] = "alltoall",
                                                    [PERF_COLL_ALLGATHER] = "allgather",
                                                    [PERF_COLL_ALLREDUCE] = "allreduce",
                                                    [PERF_COLL_BCAST] = "bcast",
                                                    [PERF_COLL_BARRIER] = "barrier"};

const char *perf_coll_op_name(enum perf_coll_op op)
{
    return op_names[op];
}

unsigned perf_coll_ops(const char *list)
{
    unsigned mask = 0;
    for (;;) {
        size_t n = strcspn(list, ",");
        unsigned found = 0;
        for (unsigned op = 0; op < PERF_COLL_OPS; op++)
            if (strlen(op_names[op]) == n && strncmp(list, op_names[op], n) == 0)
                found = 1u << op;
        if (!found)
            return 0;
        mask |= found;
        if (!list[n])
            return mask;
        list += n + 1;
    }
}

bool perf_coll_factors(const char *list, struct perf_coll_options *out)
{
    for (out->n_factors = 0; out->n_factors < PERF_MAX_FACTORS; list++) {
        char *end;
        unsigned long v = strtoul(list, &end, 10);
        if (*list < '0' || *list > '9' || v > 1000000 || (*end && *end != ','))
            return false;
        out->factor[out->n_factors++] = (unsigned)v;
        list = end;
        if (!*end)
            return true;
    }
    return false;
}

bool perf_coll_bases(const char *list, struct perf_coll_options *out)
{
    for (out->n_bases = 0; out->n_bases < PERF_MAX_BASES; list++) {
        char *end;
        double v = strtod(list, &end);
        if (end == list || !isfinite(v) || v <= 0 || v > 1e6 || (*end && *end != ','))
            return false;
        out->base[out->n_bases++] = v;
        list = end;
        if (!*end)
            return true;
    }
    return false;
}
