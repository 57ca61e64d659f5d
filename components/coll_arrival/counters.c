/* The rows of the counters. */
#include "counters.h"

const struct st_counter arrival_counters[ARRIVAL_N_COUNTERS] = {
    [COUNT_CALLS] = {"calls", "calls", STRATA_COUNT, "A collective has begun; a long allreduce counts as two."},
    [COUNT_ADVERTS] = {"adverts", "messages", STRATA_COUNT,
                       "This rank sent an advert: it has arrived, and has room for a block."},
    [COUNT_TO_CELLS] = {"blocks_to_cells", "blocks", STRATA_COUNT,
                        "A block that fits the receiver's landing cell was sent at once."},
    [COUNT_ON_DEMAND] = {"blocks_on_demand", "blocks", STRATA_COUNT,
                         "A block was sent by messages after the receiver's advert."},
    [COUNT_PUTS] = {"blocks_put", "blocks", STRATA_COUNT, "A block was put to the address of the receiver's advert."},
    [COUNT_PUT_FALLBACKS] = {"put_fallbacks", "blocks", STRATA_COUNT,
                             "A block was sent on demand because the path or its memory did not permit a put."},
    [COUNT_FROM_CELLS] = {"blocks_from_cells", "blocks", STRATA_COUNT,
                          "A block that had arrived before the call began here was taken from its landing cell."},
    [COUNT_STOPS] = {"stops", "messages", STRATA_COUNT,
                     "After a failure this rank announced that it will not put a block."},
    [COUNT_REFUSED] = {"refused", "messages", STRATA_COUNT, "An invalid message or notice was refused."},
    [COUNT_SHM_CALLS] = {"shm_calls", "calls", STRATA_COUNT, "Of the calls: leaders of nodes sent the short blocks."},
    [COUNT_SKEWED] = {"skewed_calls", "calls", STRATA_COUNT,
                      "Of the calls: form auto sent blocks directly, since the members' arrivals two calls before had "
                      "a large skew."},
    [COUNT_CRATES] = {"node_blocks", "blocks", STRATA_COUNT,
                      "Of the blocks sent: all short ones of one node for another, between their leaders."},
    [COUNT_REFUSED_AREAS] = {"refused_areas", "communicators", STRATA_COUNT,
                             "A member could not map the area of its node, so that blocks are sent directly."},
    [COUNT_CREDITS] = {"credits", "messages", STRATA_COUNT,
                       "This rank announced that a call has begun here, so that the member may send its next block."},
    [COUNT_RELAYED] = {"blocks_relayed", "blocks", STRATA_COUNT,
                       "Of the blocks sent: of a bcast, from the leader of a node to one of its members."},
    [COUNT_PIECES_RELAYED] = {"pieces_relayed", "pieces", STRATA_COUNT,
                              "The leader of a node passed on a part of a bcast's block before the rest had arrived."},
};
