/* The rows of the counters. */
#include "counters.h"

const struct st_counter arrival_counters[ARRIVAL_N_COUNTERS] = {
    [COUNT_CALLS] = {"calls", "calls", STRATA_COUNT, "A collective has begun; a long allreduce counts as two."},
    [COUNT_ADVERTS] = {"adverts", "messages", STRATA_COUNT, "A member was told where its block goes."},
    [COUNT_TO_CELLS] = {"blocks_to_cells", "blocks", STRATA_COUNT,
                        "A block was sent at once, since it fits the receiver's landing cell."},
    [COUNT_ON_DEMAND] = {"blocks_on_demand", "blocks", STRATA_COUNT,
                         "A block was sent by messages after the receiver's advert."},
    [COUNT_PUTS] = {"blocks_put", "blocks", STRATA_COUNT, "A block was put where the receiver's advert says."},
    [COUNT_PUT_FALLBACKS] = {"put_fallbacks", "blocks", STRATA_COUNT,
                             "A block of those on demand was to be put, which the path or its memory did not allow."},
    [COUNT_FROM_CELLS] = {"blocks_from_cells", "blocks", STRATA_COUNT,
                          "A block came before the call began here, and was taken from its landing cell."},
    [COUNT_STOPS] = {"stops", "messages", STRATA_COUNT, "After a failure a member was told that its block is not put."},
    [COUNT_REFUSED] = {"refused", "messages", STRATA_COUNT, "A message or a notice was refused as not true."},
    [COUNT_SHM_CALLS] = {"shm_calls", "calls", STRATA_COUNT,
                         "Of the calls: short blocks went by the leaders of nodes."},
    [COUNT_SKEWED] = {"skewed_calls", "calls", STRATA_COUNT,
                      "Of the calls: form auto let blocks go straight, since members came apart two calls before."},
    [COUNT_CRATES] = {"node_blocks", "blocks", STRATA_COUNT,
                      "Of the blocks that went: all short ones of one node for another, between their leaders."},
    [COUNT_REFUSED_AREAS] = {"refused_areas", "communicators", STRATA_COUNT,
                             "The area of a node was not mapped by a member, so that blocks go straight."},
    [COUNT_CREDITS] = {"credits", "messages", STRATA_COUNT,
                       "A member was told that a call has begun here, so that its next block may come."},
};
