/* The polling set: a few hot peers have a private ring that is polled, everyone else shares one queue. One policy,
 * two users: fast rings in btl_sm and eager RDMA in btl_openib. After "High Performance RDMA-Based MPI
 * Implementation over InfiniBand" (section on the RDMA polling set): a peer is promoted when it has sent
 * `promote_after` messages by the shared path within the current window, polled in order of recent use, and
 * demoted when it is the coldest member while a hotter peer asks.
 *
 * The set holds no transport state: members are small integers ("slots") that the transport maps to its rings. Not
 * thread safe. */
#ifndef STRATA_SDK_POLLING_SET_H
#define STRATA_SDK_POLLING_SET_H

#include <strata/sdk/component.h>
#include <strata/sdk/peer_ranges.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_polling_set;

/* The policy's numbers. */
struct st_polling_set_config {
    uint32_t max_members;   /* slots */
    uint32_t promote_after; /* shared-path messages of one peer that make it hot */
    uint32_t window;        /* arrivals (all peers) after which counts are halved */
};

/* A slot that a verdict names is reserved until joined or left is called for it, so that no verdict is repeated while a
 * ring changes its owner. A slot taken from a peer goes to the peer whose arrival caused this, if it sends again before
 * counts are halved. */
/* Action of the transport required by an arrival. */
enum st_polling_verdict {
    ST_POLL_STAY,    /* nothing to do */
    ST_POLL_PROMOTE, /* *slot is free: grant the peer a ring there, then call joined (left or unusable, if that fails)
                      */
    ST_POLL_EVICT    /* the set is full: revoke the ring in *slot from its peer, then call left (joined: keep it) */
};

/* Makes an empty set for peers 0..n_peers-1. */
ST_API int st_polling_set_create(const struct st_polling_set_config *config, uint32_t n_peers,
                                 struct st_polling_set **out);
/* Sets the peers that the user names: they are hot from their first message, and evicted only in favour of each other.
 * Call it before the first arrival. `peers` must remain valid until the set is destroyed. */
ST_API void st_polling_set_favour(struct st_polling_set *set, const struct st_peer_ranges *peers);
/* Frees the set; the transport frees the rings. */
ST_API void st_polling_set_destroy(struct st_polling_set *set);
/* Counts a message of `peer` (0..n_peers-1) by the shared path. */
ST_API enum st_polling_verdict st_polling_set_shared_arrival(struct st_polling_set *set, uint32_t peer, uint32_t *slot);
/* Counts n messages by the ring in `slot`. Cheap: called per poll batch. True: the order of polling has changed. */
ST_API bool st_polling_set_ring_arrival(struct st_polling_set *set, uint32_t slot, uint32_t n);
/* The transport has granted `peer` the ring in `slot`. */
ST_API void st_polling_set_joined(struct st_polling_set *set, uint32_t peer, uint32_t slot);
/* PROMOTE has failed, and would fail again: no peer gets the slot until `left` is called for it. */
ST_API void st_polling_set_unusable(struct st_polling_set *set, uint32_t slot);
/* The ring in `slot` has no owner any more. */
ST_API void st_polling_set_left(struct st_polling_set *set, uint32_t slot);
/* Returns the members in the order of polling, including those whose rings are being revoked: *slots has *n entries,
 * valid until the next join or leave. ring_arrival may swap an entry with the one before it, which a loop from the
 * first to the last entry may ignore. */
ST_API void st_polling_set_order(const struct st_polling_set *set, const uint32_t **slots, uint32_t *n);
/* Memory that the set holds. */
ST_API size_t st_polling_set_bytes(const struct st_polling_set *set);

#ifdef __cplusplus
}
#endif
#endif
