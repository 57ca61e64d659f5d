/* Lists of strata-perf coll on the command line. */
#ifndef PERF_COLL_OPTIONS_H
#define PERF_COLL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum perf_coll_op {
    PERF_COLL_ALLTOALL,
    PERF_COLL_ALLGATHER,
    PERF_COLL_ALLREDUCE,
    PERF_COLL_BCAST,
    PERF_COLL_BARRIER,
    PERF_COLL_OPS
};

enum { PERF_MAX_FACTORS = 16, PERF_MAX_BASES = 32 };

struct perf_coll_options {
    unsigned ops;                      /* bit per enum perf_coll_op */
    unsigned factor[PERF_MAX_FACTORS]; /* MIF: longest delay in times of one message; 0: all arrive together */
    size_t n_factors;
    unsigned late;               /* per cent of the ranks that come late by MIF; 0: delays are random */
    double base[PERF_MAX_BASES]; /* us: time of one message, one for each size */
    size_t n_bases;              /* 0: measured between ranks 0 and n - 1 */
};

const char *perf_coll_op_name(enum perf_coll_op op);
/* "alltoall,barrier": bit per operation; 0 when one is unknown. */
unsigned perf_coll_ops(const char *list);
/* "0,32,512"; false when it is not a list of at most PERF_MAX_FACTORS whole numbers. */
bool perf_coll_factors(const char *list, struct perf_coll_options *out);
/* "0.5,1.25": positive times in us; false when it is not a list of at most PERF_MAX_BASES of them. */
bool perf_coll_bases(const char *list, struct perf_coll_options *out);

#endif
