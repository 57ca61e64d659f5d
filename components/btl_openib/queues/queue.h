/* Per priority: a completion queue, a shared receive queue (unless each peer has its own) and pools of buffers. */
#ifndef IB_QUEUE_H
#define IB_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/hint.h>
#include <strata/strata.h>
#include "params.h"

struct ib_device;
struct ib_peer;
struct ib_slab; /* what was allocated and registered together */

/* ---- queue_spec.c: the parameter receive_queues, TYPE,SIZE,COUNT,LOW,CREDITS for high priority, a colon, the same for
 * low ---- */
struct ib_queue_spec {
    bool shared;      /* by all peers */
    uint32_t size;    /* bytes of a buffer */
    uint32_t count;   /* most buffers; of a peer when not shared, where credits and control have to fit */
    uint32_t low;     /* at so few the shared queue grows */
    uint32_t credits; /* messages that a peer may send before it hears from us */
    uint32_t beyond;  /* the credits: buffers that a queue of a peer's own has for what needs none */
};

/* Buffers beyond the credits: one is being read while the answer to it, with its credit, is on its way. Control
 * messages come by high priority, and at most six of a peer are unread: credits of either priority twice, CLOSE and
 * BYE. */
#define IB_BEYOND_HIGH 8u
#define IB_BEYOND_LOW  1u

/* Buffers of a receive queue of a peer's own; 0: it is shared. */
static inline uint32_t ib_own_receives(const struct ib_queue_spec *s)
{
    return s->shared ? 0 : s->credits + s->beyond;
}

/* False: `why` says what is wrong and where. */
bool ib_queue_spec_parse(const char *text, struct ib_queue_spec out[2], char *why, size_t why_size);

/* ---- buffer.c: slabs of registered memory, cut into buffers of one size ---- */
struct ib_buffer {
    struct ibv_recv_wr wr; /* made once: to post it again only wr.next changes; first, so that a list of these is one of
                              buffers */
    struct ibv_sge sge;
    struct ib_buffer *next; /* in a free list */
    char *data;
    uint32_t lkey;
    struct ib_peer *peer; /* whose receive queue it is posted to; NULL: the shared one */
};
struct ib_pool {
    const struct ib_device *dev;
    struct ib_buffer *free;
    struct ib_slab *slabs;
    uint32_t size;     /* bytes of a buffer */
    uint32_t lead;     /* bytes left free before each, so that what follows the usual heads begins with a line */
    uint32_t per_slab; /* buffers that are made at a time */
    uint32_t n_free;
};
/* Payloads behind `head` bytes begin with a line, which are copied faster; 0: buffers lie side by side. */
void ib_pool_init(struct ib_pool *p, const struct ib_device *dev, uint32_t size, uint32_t per_slab, uint32_t head);
int ib_pool_grow(struct ib_pool *p); /* STRATA_ERR_NOMEM when memory or registrations run out */
/* All that are posted to receive queues of peer's, which have gone without using any. */
void ib_pool_take_back(struct ib_pool *p, const struct ib_peer *peer);
void ib_pool_all_back(struct ib_pool *p); /* all that were ever got */
void ib_pool_destroy(struct ib_pool *p);
size_t ib_pool_bytes(const struct ib_pool *p);
static inline struct ib_buffer *ib_buffer_get(struct ib_pool *p)
{
    struct ib_buffer *b = p->free;

    if (ST_UNLIKELY(!b) && (ib_pool_grow(p) != STRATA_OK || !(b = p->free)))
        return NULL;
    p->free = b->next;
    p->n_free--;
    return b;
}
static inline void ib_buffer_put(struct ib_pool *p, struct ib_buffer *b)
{
    b->next = p->free;
    p->free = b;
    p->n_free++;
}

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
/* n_peers has grown, or shrunk: then excess buffers are not posted again. */
void ib_srq_retarget(struct ib_queue *q, bool more);
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
