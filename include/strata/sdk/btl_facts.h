/* Contract of the btl framework, facts: latency, bandwidth and costs of a path, as a module states them (btl.h). */
#ifndef STRATA_SDK_BTL_FACTS_H
#define STRATA_SDK_BTL_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Facts about the path to a peer, from which the clients' thresholds are derived (thresholds.h). A cost is a time,
 * expressed as the number of bytes transferred in it, so that it compares with a message length. */
struct st_btl_facts {
    uint32_t latency_ns;    /* of a short message, one way; not 0 */
    uint32_t bandwidth_mbs; /* MB/s; not 0 */
    uint32_t ask_cost;      /* to ask the receiver first, bytes; 0: two latencies at this bandwidth */
    uint32_t fragment_cost; /* bytes that are copied in the time of one more fragment; 0: 1 KiB */
    uint32_t zcopy_cost;    /* of send_zcopy beside the copy that it saves, bytes; 0: it never pays */
    size_t rdma_cost;       /* of a get or put, registration included, beside the copies that it saves, bytes */
    size_t split_cost;      /* to have one half put and the other got, at the same time, bytes: where the processors of
                               both ends do the moving; 0: that never pays */
    /* The same for a message that travels alone: no other is under way, so that the copies of a fragment at both ends
     * follow one another, and nothing hides what it costs to ask. */
    uint32_t alone_cost;     /* to ask and to get, beside fragments, bytes; 0: it never pays */
    size_t alone_split_cost; /* as split_cost, beside one get */
    bool fixed;              /* costs or limits are the user's: nothing is learnt from the times of messages */
};

#endif
