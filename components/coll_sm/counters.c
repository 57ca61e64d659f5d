/* The rows of the counters. */
#include "counters.h"

const struct st_counter cs_counters[SM_N_COUNTERS] = {
    [COUNT_CALLS] = {"calls", "calls", STRATA_COUNT, "A collective was done by shared memory."},
    [COUNT_STEPS] = {"steps", "steps", STRATA_COUNT, "A step of one: buffers are filled, and read by others."},
    [COUNT_READS] = {"reads", "blocks", STRATA_COUNT, "A block was read from another process' own memory."},
    [COUNT_BELOW] = {"below", "calls", STRATA_COUNT,
                     "A collective waited for the members' agreement and went to the next component."},
    [COUNT_REFUSED] = {"refused", "communicators", STRATA_COUNT,
                       "A communicator was left to others: its members cannot all map each other's memory."},
};
