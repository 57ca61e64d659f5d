/* What deliveries over connections and datagrams share. */
#ifndef SOFTHCA_DELIVER_H
#define SOFTHCA_DELIVER_H

#include "hca.h"

/* The queue pair that a message is for. Held: the owner waits for hca_let_go before it changes it. */
struct hca_target {
    struct hca_peer *peer;
    struct hca_qp *qp;
    uint32_t qpn;
};
/* The queue pair of that number if it is one of `type` that can receive. */
HCA_INTERNAL bool hca_take_hold(uint32_t qpn, uint32_t type, struct hca_target *t);
HCA_INTERNAL void hca_let_go(struct hca_target *t);

/* The fault `drop`: true when this message is lost on the way. */
HCA_INTERNAL bool hca_lost(const struct hca_qp_own *qp);
/* A fault: the message that has just arrived is not acknowledged until it is sent again. */
HCA_INTERNAL bool hca_unheard(struct hca_qp_own *qp);

/* A receive that was taken for a message. */
struct hca_landing {
    uint64_t id, room; /* bytes */
    struct hca_sge sge[HCA_MAX_SGE];
    uint32_t n_sge, pd;
};
/* False: the receiver is not ready, or, *lost, will never be. */
HCA_INTERNAL bool hca_land(struct hca_target *t, struct hca_landing *l, bool *lost);
/* Turns the first `length` bytes of a list into addresses of `segment`'s process, if its keys allow all of `access`. */
HCA_INTERNAL bool hca_list_check(char *segment, uint32_t pd, struct hca_sge *sge, uint32_t n, uint64_t length,
                                 unsigned access);
/* The completion of a receive; `e` holds what is particular. */
HCA_INTERNAL void hca_landed(struct hca_target *t, const struct hca_landing *l, enum ibv_wc_status status,
                             struct hca_cqe *e);
/* A send's own list, checked; false: local protection error. */
HCA_INTERNAL bool hca_source(const struct hca_qp_own *qp, const struct hca_swqe *w, unsigned access,
                             struct hca_source *s);

#endif
