/* Conformance of one BTL: the contract of <strata/sdk/btl.h>, tested on the modules themselves, below the PML. A case
 * is run by `ranks` ranks, which are threads (tests/conformance/btl_test.c) or processes
 * (tools/strata-conformance). */
#ifndef TEST_SUPPORT_BTL_SUITE_H
#define TEST_SUPPORT_BTL_SUITE_H

#include "support/suite.h"
#include "framework/base/context.h"

struct btl_under_test {
    struct tw_rank *r;
    struct st_btl *t;
    struct st_btl_endpoint *ep[4]; /* by rank; NULL: not connected */
    int peer;                      /* the other of two ranks; oneself when the transport reaches nobody else */
};

struct btl_case {
    const char *name;
    int ranks;
    void (*body)(struct btl_under_test *u);
    bool connects; /* the body connects its ranks; otherwise they are connected before it */
};

/* Runs case `c` over component `name` with `settings`; a component that only reaches its own rank gets one rank. */
void btl_case_run(const struct btl_case *c, const char *name, const char *settings, bool only_self);

/* The same with the caller as one rank of a job that is there already. Collective over the job, of c->ranks
 * ranks, or of one for a component that only reaches its own. */
void btl_case_join(const struct btl_case *c, const char *name, struct tw_rank *r);

/* Case number i of all, or NULL behind the last. */
const struct btl_case *btl_case_at(size_t i);

/* For the cases: connects to a rank. */
void btl_connect(struct btl_under_test *u, int rank);
/* Polls all modules once. */
int btl_poll(struct btl_under_test *u);
/* Sends, polling while refused. */
void btl_send_all(struct btl_under_test *u, int rank, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len);
/* Sets who receives ST_AM_TEST, then meets the others so that nothing arrives before. */
void btl_handler(struct btl_under_test *u, st_deliver_fn fn, void *arg);
/* All ranks meet, polling. */
void btl_meet(struct btl_under_test *u);

extern const struct btl_case btl_am_cases[], btl_rdma_cases[], btl_life_cases[], btl_attribute_cases[],
    btl_capability_cases[];
extern const size_t n_btl_am_cases, n_btl_rdma_cases, n_btl_life_cases, n_btl_attribute_cases, n_btl_capability_cases;

#endif
