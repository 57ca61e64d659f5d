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
    int cards_due, cards, masks;
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
/* Registers memory, polling while refused; what reg says then. */
int rdma_enroll(struct btl_under_test *u, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *reg);
/* Tells the peer where `mine` is and its key now, and learns the same of the peer. Before a second time both meet. */
void rdma_exchange(struct rdma *x);
/* Gets from, or puts to, `offset` of the peer's memory. STRATA_OK, or STRATA_ERR_UNSUPPORTED when the endpoint lost the
 * capability. */
int rdma_move(struct rdma *x, bool get, char *local, size_t offset, size_t len);
/* Meets the peer. */
void rdma_teardown(struct rdma *x);

/* The case of btl_put_notify.c. */
void rdma_put_notify(struct btl_under_test *u);
/* The case of btl_map.c. */
void rdma_map(struct btl_under_test *u);

#endif
