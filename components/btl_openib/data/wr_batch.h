/* Send requests that wait for each other, all for one queue pair. They count as posted everywhere. */
#ifndef IB_WR_BATCH_H
#define IB_WR_BATCH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define IB_BATCHED 8u /* requests that one call hands over */

struct ib_module;
struct ib_qp;

struct ib_batch {
    struct ib_qp *q; /* that they are for */
    uint32_t n;
    bool on; /* between batch(true) and batch(false) of the module */
    struct ibv_send_wr wr[IB_BATCHED];
    struct ibv_sge sge[IB_BATCHED][2];
};

/* False: the request has to be posted by itself, now. */
bool ib_batch_add(struct ib_module *m, struct ib_qp *q, const struct ibv_send_wr *wr);
/* Posts the waiting requests. Other requests to the same queue pair come behind this. */
void ib_batch_post(struct ib_module *m);
/* Drops requests for a queue pair that goes away. */
void ib_batch_drop(struct ib_module *m, const struct ib_qp *q);

#endif
