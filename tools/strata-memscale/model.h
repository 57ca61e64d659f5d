/* Memory of a process as a sum of objects, fitted to measurements. */
#ifndef MEMSCALE_MODEL_H
#define MEMSCALE_MODEL_H

#include <stdbool.h>
#include <stddef.h>

/* What memory is proportional to. */
enum model_term {
    MODEL_BASE,  /* 1 */
    MODEL_RANK,  /* N, ranks of the job */
    MODEL_PEER,  /* P, peers connected to the process */
    MODEL_LOG,   /* log2(1 + P): buffers of a shared receive queue (paper, section 5.2.2) */
    MODEL_RING,  /* R, peers that have an eager RDMA ring */
    MODEL_EACH,  /* 1 / N: pages that all processes share */
    MODEL_QUEUE, /* Q, entries of queues that are made for all peers */
    MODEL_TERMS
};
enum { MODEL_ALL_TERMS = (1 << MODEL_TERMS) - 1 };

struct model_point {
    double x[MODEL_TERMS]; /* the terms at this size of the job */
    double bytes;
};

/* bytes = sum of size[t] x[t]; no size is negative. */
struct model {
    double size[MODEL_TERMS];
};

double model_bytes(const struct model *m, const double x[MODEL_TERMS]);
/* Least squares of relative errors, by the terms of `allowed`, a bit 1 << t each. Of all their subsets the one with the
 * least corrected information criterion (AICc) is taken, so that noise makes no term; the logarithm
 * goes with the peers, where they are allowed. False: fewer than two points. */
bool model_fit(struct model *m, unsigned allowed, const struct model_point *points, size_t n);

#endif
