/* Per priority: a completion queue, a shared receive queue (unless each peer has its own) and pools of buffers. */
#ifndef IB_QUEUE_H
#define IB_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <strata/sdk/hint.h>
#include "params.h"
#include "queues/buffer.h"
#include "queues/queue_spec.h"

#define IB_POLLED 16 /* completions polled at a time */

struct ib_queue {
    const struct ib_device *dev;
    struct ibv_cq *cq;
    uint32_t cqe, cqe_used; /* entries of the CQ, and those that work requests could fill */
    struct ibv_srq *srq;    /* NULL: receive queues per peer */
    struct ib_pool receives, sends;
    /* Consumed buffers of the SRQ, posted again `batch` at a time, and when nothing arrives. Per peer: batch is 0, so
     * that each buffer is looked at. */
    struct ibv_recv_wr *again;
    uint32_t n_again, batch;
    uint32_t posted;                /* buffers in the SRQ, in completions not yet polled, and in `again` */
    uint32_t target;                /* buffers that should be posted */
    uint32_t grown;                 /* largest target that traffic has shown to be needed; 0: the first was enough */
    uint32_t srq_max;               /* work requests that the SRQ was made for */
    uint32_t n_peers;               /* with queue pairs */
    uint32_t full;                  /* polls, ever, that returned IB_POLLED completions */
    uint32_t full_seen, full_begun; /* `full` at the last call of ib_cqs_read, and when its round began */
    bool read;                      /* in this round: the CQ was emptied, or all that was in it at first was polled */
    uint32_t behind;                /* completions polled since the CQ was last nearly empty */
    bool fixed;                     /* the CQ cannot be resized */
    bool armed;                     /* the SRQ limit is set, and its event has not come */
    bool passed;                    /* a query saw the limit gone without an event */
    bool grow;                      /* few buffers are left */
    bool short_logged;              /* the log says that the SRQ has run short */
    uint8_t rnr_code;               /* that connected peers use */
    uint8_t priority;
    uint64_t n_grown; /* times that the target was raised */
    uint64_t look_at; /* ns, next query of the SRQ limit */
    const struct ib_queue_spec *spec;
    uint32_t ranks; /* of the job; 0: not known */
};

extern const char *const ib_priority_name[];

/* ---- queue.c: both queues of a module ---- */
int ib_queues_open(struct ib_queue q[], const struct ib_device *dev, const struct ib_queue_spec spec[], uint32_t ranks,
                   char *why, size_t why_size);
/* Whether the device's queues hold what the parameters want of each; `why` says which do not. */
bool ib_queues_fit(const struct ib_device *dev, const struct ib_queue_spec spec[], char *why, size_t why_size);
void ib_queues_close(struct ib_queue q[]);

/* ---- queue_size.c ---- */
uint32_t ib_log2_up(uint32_t n);
uint32_t ib_doubled(uint32_t now, uint32_t want, uint32_t most);   /* until it reaches want */
uint32_t ib_cq_most(const struct ib_queue *q);                     /* entries that it may ever have */
uint32_t ib_cq_for_all(const struct ib_queue *q);                  /* entries for all peers there may be */
uint32_t ib_srq_most(const struct ib_queue *q);                    /* buffers that it may ever have */
uint32_t ib_srq_first(const struct ib_queue *q, uint32_t n_peers); /* x = log2(n) * k + b */
uint32_t ib_srq_for_all(const struct ib_queue *q);                 /* buffers that all peers may fill */
uint32_t ib_cqs_peers(const struct ib_queue q[]);                  /* peers whose completions fit both CQs */

/* ---- cq.c ---- */
int ib_cq_open(struct ib_queue *q);
int ib_cq_reserve(struct ib_queue *q, uint32_t n); /* room for the completions of n more work requests */
void ib_cq_release(struct ib_queue *q, uint32_t n);
/* Called between polls: whether each CQ was polled to the end of what was in it since this was last true. */
bool ib_cqs_read(struct ib_queue q[]);

/* ---- srq.c; for queues with an SRQ ---- */
int ib_srq_open(struct ib_queue *q);
void ib_srq_retarget(struct ib_queue *q); /* n_peers has grown */
void ib_srq_fewer(struct ib_queue *q);    /* n_peers has shrunk: excess buffers are not posted again */
/* Code of the RNR timer, table 45 of the specification. The more peers share a queue the longer it is: all that wait
 * try again in turn, and too many attempts take the receiver's time. */
uint8_t ib_rnr_code(const struct ib_queue *q);
void ib_srq_fill(struct ib_queue *q);            /* posts what was consumed, and more when few are left */
uint32_t ib_srq_grant(const struct ib_queue *q); /* messages that one more peer may have in flight */
/* IB_POLLED completions came at once. True: so many in a row that an event of the device may wait to be read. */
bool ib_srq_behind(struct ib_queue *q);
void ib_srq_limit(struct ib_queue *q); /* the device says that few buffers are left */
/* The event may get lost: queries now and then whether the limit is gone without one. */
void ib_srq_limits_look(struct ib_queue *q, uint64_t now);

#endif
