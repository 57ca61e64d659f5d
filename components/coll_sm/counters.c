/* The rows of the counters. */
#include "counters.h"

const struct st_counter cs_counters[SM_N_COUNTERS] = {
    [COUNT_CALLS] = {"calls", "calls", STRATA_COUNT, "A collective used shared memory."},
    [COUNT_STEPS] = {"steps", "steps", STRATA_COUNT,
                     "A collective made a step: buffers are filled, and read by others."},
    [COUNT_READS] = {"reads", "blocks", STRATA_COUNT, "A block was read from the memory of another process."},
    [COUNT_BELOW] = {"below", "calls", STRATA_COUNT,
                     "A collective waited for the members' agreement and went to the next component."},
    [COUNT_REFUSED] = {"refused", "communicators", STRATA_COUNT,
                       "A communicator was left to other components: its members cannot all map each other's memory."},
};
