/* Two queue pairs of a module that are connected to each other, with a CQ of their own: to measure the device without a
 * peer. Nothing of the module's traffic is touched. */
#ifndef IB_LOOP_H
#define IB_LOOP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct ib_module;

#define IB_LOOP_DEPTH 8u
#define IB_LOOP_LIMIT 2000000u /* ns for one operation: as slow as that is no sample */

struct ib_loop {
    struct ibv_cq *cq;
    struct ibv_qp *qp[2]; /* the first one sends to the second */
};

/* inlined: bytes that a work request may carry. False: the device makes none, or does not connect to itself; nothing is
 * left to end. */
bool ib_loop_begin(struct ib_module *m, struct ib_loop *l, uint32_t inlined);
void ib_loop_end(struct ib_loop *l);
/* Takes n completions; false: there was an error, or not so many until that time (st_now_ns). */
bool ib_loop_take(struct ib_loop *l, int n, uint64_t until);

#endif
