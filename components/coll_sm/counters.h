/* Operations of the component, and its counters. */
#ifndef COLL_SM_COUNTERS_H
#define COLL_SM_COUNTERS_H

#include <strata/sdk/component.h>

enum sm_kind { SM_BARRIER, SM_BCAST, SM_REDUCE, SM_ALLREDUCE, SM_ALLGATHER, SM_ALLTOALL, SM_OPS };

enum sm_counter {
    COUNT_CALLS,   /* by areas */
    COUNT_STEPS,   /* of them */
    COUNT_READS,   /* blocks read from another process' memory */
    COUNT_BELOW,   /* operations that waited in the queue and went to the next component */
    COUNT_REFUSED, /* communicators whose members could not all map each other */
    SM_N_COUNTERS
};

extern const struct st_counter cs_counters[SM_N_COUNTERS];

#endif
