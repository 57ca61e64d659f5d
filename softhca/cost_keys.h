/* What can be made to cost time, by SOFTHCA_COST: one key each. */
#ifndef SOFTHCA_COST_KEYS_H
#define SOFTHCA_COST_KEYS_H

enum hca_cost_key {
    HCA_COST_REG,       /* a memory registration */
    HCA_COST_PAGE,      /* a page of it */
    HCA_COST_DEREG,     /* a deregistration */
    HCA_COST_QP,        /* a queue pair made */
    HCA_COST_QP_ENTRY,  /* an entry of its send and receive queue, as asked for */
    HCA_COST_CQ,        /* a completion queue made */
    HCA_COST_CQ_ENTRY,  /* an entry of it, as asked for */
    HCA_COST_MODIFY,    /* an ibv_modify_qp */
    HCA_COST_DESTROY,   /* a queue pair or completion queue destroyed */
    HCA_COST_POST_SEND, /* a work request handed to ibv_post_send */
    HCA_COST_POST_RECV, /* a receive handed to ibv_post_recv or ibv_post_srq_recv */
    HCA_COST_SEGMENT,   /* an entry of a send's list beyond the first */
    HCA_COST_MAX_SGE,   /* an entry of the queue pair's longest list of sends, for each send */
    HCA_COST_PACKET,    /* a packet of a message */
    HCA_COST_POLL,      /* a call of ibv_poll_cq */
    HCA_COST_COLD,      /* a page of a send's list that is not in the translation cache */
    HCA_COST_SWITCH,    /* the engine goes on with another queue pair */
    HCA_COST_EVENT,     /* a completion event fetched */
    HCA_COST_BYTE,      /* a byte of payload */
    HCA_COST_ENGINE,    /* no time: a send that had the serialised engine for itself */
    HCA_COSTS
};

/* As SOFTHCA_COST and softhca-stat have them. */
extern __attribute__((visibility("hidden"))) const char *const hca_cost_names[HCA_COSTS];

#endif
