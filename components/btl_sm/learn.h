/* Costs of copies at a distance, learnt from those of real messages: from which size single copy pays. */
#ifndef SM_LEARN_H
#define SM_LEARN_H

#include "copy_facts.h"

struct sm_costs;
struct sm_module;
struct sm_peer;

#define SM_FIRST_TRIAL ((uint64_t)64 << 20) /* bytes by the way in use before it */
#define SM_COPY_NEVER  ((size_t)1 << 40)    /* bytes; no message is so long */

/* A fragment of `bytes` out of a ring of a sender at distance `d` has taken `ns` with what its client did. */
void sm_ring_took(struct sm_module *m, enum sm_distance d, uint32_t bytes, uint64_t ns);
/* Reads what a sender, p, says of its copies into rings, where this process makes none. */
void sm_fill_told(struct sm_module *m, const struct sm_peer *p);
/* A fragment of `bytes` into p's ring has taken `ns`. Reads what p says of its copies out of rings. */
void sm_ring_filled(struct sm_peer *p, uint32_t bytes, uint64_t ns);
/* The kernel has copied `bytes` to or from p in `ns`, for an operation of this process, of `whole` bytes. */
void sm_copied(struct sm_peer *p, uint64_t bytes, uint64_t ns, uint64_t whole);
/* A peer at distance `d` has sent so many bytes, which came through a ring or by single copy. Begins and ends trials of
 * the way that is not in use. */
void sm_costs_moved(struct sm_module *m, enum sm_distance d, uint64_t bytes, bool by_ring);
/* Costs have changed: the peers at that distance get new limits. Ends a trial that takes too long. From progress. */
void sm_costs_tell(struct sm_module *m);

#endif
