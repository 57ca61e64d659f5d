/* Patterns of messages. The leading side's batches, and what the other side does meanwhile. */
#ifndef MIBA_PATTERN_H
#define MIBA_PATTERN_H

#include "endpoint.h"
#include "measure.h"

/* Round trips that come before the clock starts. */
#define WARM_UP 8u

/* Measures and reports what the traffic's pattern says; test.h, lead. */
enum miba_status pattern_lead(struct miba *m, const struct miba_case *c, struct endpoint *e);
/* Batches for measure.h; `arg` is the endpoint. */
enum miba_status pattern_batch(void *arg, unsigned n, double ns[MOST_FIGURES]);
/* A leading side's part of a batch: sets *ns, and e->over when it ended early. */
typedef enum miba_status (*own_part)(struct endpoint *e, unsigned n, uint64_t *ns);
/* A batch with another part of the leading side than the pattern's. The other side does the pattern's. */
enum miba_status pattern_batch_of(struct endpoint *e, own_part part, unsigned n, double *ns);
/* Counts of batches of this traffic are multiples of it (struct measure): of a window, as long as that is no more than
 * 4 MiB. */
unsigned pattern_step(const struct traffic *t);
/* Whether the other side takes part in batches of this traffic. */
bool pattern_is_paired(const struct traffic *t);
/* The following side's part of a batch of n messages. It ends early, with MIBA_OK, when the leading side says
 * something. */
enum miba_status pattern_follow(struct endpoint *e, unsigned n, uint64_t *ns, uint32_t *arrived);

/* The following side's part where it has loaders (loaders.c): they write or send until the leading side stops, and it
 * receives. */
enum miba_status loaders_follow(struct endpoint *e, unsigned n, uint32_t *arrived);

/* Loops (pingpong.c, stream.c). They set *ns to what they took, and end early with e->over set. */
enum miba_status pingpong(struct endpoint *e, bool first, unsigned n, uint64_t *ns);
enum miba_status round_trips(struct endpoint *e, unsigned n, uint64_t *ns); /* reads and atomics */
enum miba_status stream(struct endpoint *e, unsigned send, unsigned expect, uint64_t *ns, uint32_t *arrived);

#endif
