/* What a measured configuration says of the model's terms. */
#ifndef MEMSCALE_MODEL_TERMS_H
#define MEMSCALE_MODEL_TERMS_H

#include "memscale.h"
#include "model.h"

/* A process' memory is the sum of parts, each with a model of its own; the last one, Strata's own, is part of the
 * others. */
enum model_part { PART_PRIVATE, PART_SHARED, PART_TABLES, PART_DEVICE, N_SUMMED, PART_OURS = N_SUMMED, N_PARTS };
extern const char *const model_part_names[N_PARTS];

/* Limits of one configuration and pattern; INFINITY where there is none. */
struct model_limits {
    enum pattern pattern;
    bool strata;
    double peers;             /* connected at a time: btl_openib_max_connected_peers, and those who ask */
    double rings;             /* eager RDMA; 0: off */
    double per_peer, entries; /* of the shared receive queue: for each peer, and at most */
};

void model_limits_of(struct model_limits *l, const json_t *one);
/* x of a job of `ranks`. */
void model_terms(const struct model_limits *l, double ranks, double x[MODEL_TERMS]);
/* Terms that a part may have. */
unsigned model_allowed(const struct model_limits *l, enum model_part part);
double model_part_bytes(const json_t *one, enum model_part part);

#endif
