/* Requests to send that wait for each other, all for one queue pair; list.c. In the ring of what was posted, and in
 * every count, they are as if posted. */
#ifndef IB_LIST_H
#define IB_LIST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define IB_LIST 8u /* requests that one call hands over */

struct ib_module;
struct ib_qp;

struct ib_list {
    struct ib_qp *q; /* that they are for */
    uint32_t n;
    bool on; /* between batch(true) and batch(false) of the module */
    struct ibv_send_wr wr[IB_LIST];
    struct ibv_sge sge[IB_LIST][2];
};

/* False: it has to be posted by itself, now. */
bool ib_list_add(struct ib_module *m, struct ib_qp *q, const struct ibv_send_wr *wr);
/* Hands over what waits. Whatever else is posted to the same queue pair comes after this. */
void ib_list_post(struct ib_module *m);
/* Forgets what waits for a queue pair that goes away. */
void ib_list_drop(struct ib_module *m, const struct ib_qp *q);

#endif
