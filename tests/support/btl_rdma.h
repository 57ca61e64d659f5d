/* What the RDMA cases of the contract of transports share: memory of two ranks that each exposes to the other. */
#ifndef TEST_SUPPORT_BTL_RDMA_H
#define TEST_SUPPORT_BTL_RDMA_H

#include <strata/sdk/btl_rdma.h>
#include "support/btl_suite.h"

enum { RDMA_AREA = 400000 };

/* What a rank tells the other about its memory. */
struct rdma_card {
    uint64_t base;
    uint8_t key[ST_BTL_KEY_MAX];
};

struct rdma {
    struct btl_under_test *u;
    struct rdma_card peer;
    int cards, masks;
    uint32_t peer_mask; /* a message without data: which of its operations have worked */
    char *mine, *local; /* RDMA_AREA bytes: exposed to the peer, and for operations of ours */
    struct st_btl_reg mine_reg, local_reg;
};

/* Under way; how often it was reported as done, and how it ended. */
struct rdma_op {
    struct st_btl_op op;
    int rc;
    int calls;
};

void rdma_op_done(struct st_btl_op *o, int rc);
/* False where the transport has no RDMA: there is no memory then, and all else works. */
bool rdma_setup(struct rdma *x, struct btl_under_test *u);
/* Meets the peer. */
void rdma_teardown(struct rdma *x);

/* The case of btl_put_notify.c. */
void rdma_put_notify(struct btl_under_test *u);

#endif
