/* The module (one port of one device), its queues and its peers: what the files of this component share. Nothing here
 * is in memory that another process writes, except the bytes of receive buffers. All of it is under the context's lock.
 */
#ifndef IB_OPENIB_H
#define IB_OPENIB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/list.h>
#include <strata/sdk/rank_table.h>
#include <strata/sdk/slab.h>
#include "params.h"
#include "queue_spec.h"
#include "wire.h"

#define IB_LIKELY(x)   __builtin_expect(!!(x), 1)
#define IB_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- buffers (buffer.c): slabs of registered memory, cut into pieces of one size ---- */

struct ib_buffer {
    struct ib_buffer *next; /* in a free list */
    char *data;
    uint32_t lkey;
    uint8_t priority;
    struct ib_peer *peer; /* whose receive queue it is posted to; NULL: the shared one */
};
struct ib_slab; /* what was allocated and registered together */
struct ib_pool {
    struct ib_module *m;
    struct ib_buffer *free;
    struct ib_slab *slabs;
    uint32_t size;     /* bytes of a buffer */
    uint32_t per_slab; /* buffers that are made at a time */
    uint32_t n, n_free;
    uint8_t priority;
};
void ib_pool_init(struct ib_pool *p, struct ib_module *m, uint32_t size, uint32_t per_slab, uint8_t priority);
int ib_pool_grow(struct ib_pool *p); /* STRATA_ERR_NOMEM when memory or registrations run out */
void ib_pool_destroy(struct ib_pool *p);
size_t ib_pool_bytes(const struct ib_pool *p);
static inline struct ib_buffer *ib_buffer_get(struct ib_pool *p)
{
    struct ib_buffer *b = p->free;

    if (IB_UNLIKELY(!b) && (ib_pool_grow(p) != STRATA_OK || !(b = p->free)))
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

/* ---- the two priorities of a module ---- */

struct ib_queue {
    struct ibv_cq *cq;
    uint32_t cqe, cqe_used; /* entries there are, and those that work requests could fill */
    struct ibv_srq *srq;    /* NULL: receive queues per peer */
    struct ib_pool receives, sends;
    uint32_t posted;  /* buffers in the shared receive queue and in completions that were not polled */
    uint32_t target;  /* as many are to be posted */
    uint32_t srq_max; /* work requests that the shared queue was made for */
    bool grow;        /* the limit event has come, or posted was seen low */
    uint8_t rnr_code; /* that connected peers were told */
    /* Consumed ones of the shared queue, to be posted again together. */
    struct ib_buffer *again;
    uint32_t n_again;
};

/* ---- a peer's queue pair ---- */

enum ib_sent_kind { IB_SENT_NOTHING, IB_SENT_BUFFER, IB_SENT_OP, IB_SENT_RDMA };
struct ib_sent {
    void *what; /* struct ib_buffer, struct st_btl_op or struct ib_rdma */
    uint8_t kind;
    bool signalled;
};
struct ib_qp {
    struct ibv_qp *qp;
    struct ib_peer *peer;
    struct ib_sent *sent;  /* ring of `depth`, a power of two */
    uint32_t posted, done; /* work requests ever; posted - done <= depth */
    uint32_t depth;
    uint32_t unsignalled; /* since the last signalled one */
    uint32_t receives;    /* posted to its own receive queue */
    uint32_t received;    /* messages, ever */
    uint32_t credits;     /* messages that the peer has room for */
    uint32_t owed;        /* messages of the peer consumed here and not yet said */
    uint32_t window;      /* at which half owed is said even if nothing else is */
    uint8_t priority;
};

/* States of a peer: docs/design/btl_openib.md. */
enum ib_state {
    IB_IDLE,
    IB_ASKING,
    IB_ANSWERED,
    IB_UP,
    IB_DRAINING,       /* we want to close: waiting for what was sent */
    IB_ASKED_TO_CLOSE, /* and have said so */
    IB_CONSENTING,     /* the peer wants to close: waiting for what was sent */
    IB_CONSENTED,      /* and have said that it may */
    IB_CLOSED,         /* the queue pairs can go */
    IB_GONE,
    IB_FAILED
};

struct ib_peer {
    struct st_btl_endpoint ep;
    uint8_t state;
    bool connected;        /* the layer above has it */
    bool owing;            /* in the module's list of those to be told of credits */
    bool left;             /* it has said goodbye: errors from now on are no news */
    bool counted;          /* in n_up */
    bool flushing;         /* closed, and its own receives are to come back */
    uint32_t mine, theirs; /* ids of the attempt that made the connection */
    uint32_t seen;         /* work requests and messages when the hand of the clock came by */
    uint64_t waits_since;  /* ns; for another connection to go */
    struct ib_qp q[IB_PRIORITIES];
    struct ib_peer *next_owing;
    struct ib_peer *next; /* all of the module */
    struct ib_wire_up *up;
    const char *error; /* found, to be reported at the end of progress */
};

/* What is needed while a connection is made; freed when it is up. */
struct ib_wire_up {
    struct st_node node; /* in the module's list of those with a timer */
    struct ib_peer *peer;
    struct ib_card card; /* the peer's */
    struct ibv_ah *ah;
    uint32_t credits[IB_PRIORITIES];     /* that the peer grants at first */
    uint64_t again_at, give_up_at, wait; /* ns */
};

/* A put or get that is longer than one work request may be. */
struct ib_rdma {
    struct st_node node; /* in the module's list until all of it is posted */
    struct ib_peer *peer;
    struct st_btl_op *op;
    uint64_t local, remote, left;
    uint32_t lkey, rkey;
    bool read;
};

/* Peers by the number of a queue pair: a hash table with open addressing. */
struct ib_qp_map {
    struct ib_qp **slot;
    uint32_t mask, n;
};

struct ib_datagrams; /* datagram.c */

struct ib_module {
    struct st_btl btl;
    const struct ib_params *par;
    struct st_rte *rte;
    struct ibv_context *device;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_port_attr port_attr;
    struct ibv_device_attr attr;
    union ibv_gid gid;
    char name[IBV_SYSFS_NAME_MAX + 8]; /* device:port */
    uint8_t port, gid_index;
    bool global; /* addresses carry a GRH */
    enum ibv_mtu mtu;
    uint32_t index;      /* of this rail */
    uint32_t max_inline; /* as the queue pairs have it */
    uint64_t max_rdma;   /* bytes of one work request */

    struct ib_queue_spec spec[IB_PRIORITIES];
    struct ib_queue q[IB_PRIORITIES];
    struct ib_qp_map map;
    struct ib_qp *last; /* that the last message came by */
    struct st_rank_table peers;
    struct ib_peer *all;
    uint32_t n_peers, n_up, n_closing; /* that there are; with queue pairs; that give them up */
    struct ib_peer *hand;              /* of the clock that looks for the least recently used */
    struct ib_peer *owing;
    struct st_slab rdmas;
    struct st_node rdma_waiting;
    struct st_node wiring; /* struct ib_wire_up with a timer */
    uint32_t polls;        /* calls of progress */
    bool broken;           /* some peer has an error to be reported */
    bool closing;
    bool stashed;    /* see stash */
    bool reg_warned; /* that memory cannot be registered */

    struct ib_card card;
    struct ib_datagrams *datagrams;
    struct {
        struct ibv_wc wc[16];
        int n, at;
    } stash[IB_PRIORITIES]; /* completions that arm has found */
    size_t registered;      /* bytes, by reg */
    uint64_t reg_refused;   /* ns, since when reg has had no success; 0: it has */
    struct {
        uint64_t high, low, inlined, again, credits, grown, requests, replies, repeats, refused, connected, torn_down,
            forced;
    } count;
};

static inline struct ib_module *ib_module(struct st_btl *btl)
{
    return (struct ib_module *)(void *)btl;
}
static inline struct ib_peer *ib_peer(struct st_btl_endpoint *ep)
{
    return (struct ib_peer *)(void *)ep;
}

/* ---- port.c: choosing devices, ports and addresses ---- */
/* Modules, without queues, for every port that is to be used; *n may be 0 with `why` saying so. */
int ib_ports_open(const struct ib_params *par, struct ib_module ***out, size_t *n, char *why, size_t why_size);
void ib_port_close(struct ib_module *m);

/* ---- module.c ---- */
int ib_module_open(struct ib_module *m, strata_t *s, const struct st_component *c, uint32_t index, char *why,
                   size_t why_size);
void ib_close(struct st_btl *btl);
uint64_t ib_now_ns(void);

/* ---- queue.c: completion queues and shared receive queues ---- */
int ib_queues_open(struct ib_module *m, char *why, size_t why_size);
/* What cannot be made, errno's text, and the limit on locked memory when that may be the reason. */
void ib_explain(const struct ib_module *m, const char *what, char *why, size_t why_size);
void ib_queues_close(struct ib_module *m);
/* Makes room for the completions of n more work requests. */
int ib_cq_reserve(struct ib_module *m, uint32_t priority, uint32_t n);
void ib_cq_release(struct ib_module *m, uint32_t priority, uint32_t n);
/* The number of connected peers has changed: x = log2(n) * k + b. */
void ib_srq_retarget(struct ib_module *m);
/* How long a sender waits that finds no buffer, as the code of the specification's table 45. The longer the more peers
 * there are for one buffer of a shared queue that cannot grow: all that wait try again in turn, and too many attempts
 * would take the receiver's time. */
uint8_t ib_rnr_code(const struct ib_module *m, uint32_t priority);
/* Posts what has been consumed, and more when the queue is to grow. */
void ib_srq_fill(struct ib_module *m, uint32_t priority);
/* The device says that few buffers are left. */
void ib_srq_limit(struct ib_module *m, uint32_t priority);

/* ---- qp.c: queue pairs of a peer ---- */
int ib_qps_make(struct ib_peer *p);
int ib_qps_connect(struct ib_peer *p, const struct ib_conn *theirs); /* to RTS */
void ib_qps_destroy(struct ib_peer *p);
int ib_qp_map_init(struct ib_qp_map *map);
int ib_qp_map_add(struct ib_qp_map *map, struct ib_qp *q);
void ib_qp_map_remove(struct ib_qp_map *map, uint32_t qpn);
void ib_qp_map_destroy(struct ib_qp_map *map);
struct ib_qp *ib_qp_map_find(const struct ib_qp_map *map, uint32_t qpn);
/* Posts a consumed buffer of a receive queue per peer again. */
void ib_rq_repost(struct ib_qp *q, struct ib_buffer *b);

/* ---- endpoint.c ---- */
int ib_reach(struct st_btl *btl, int rank);
int ib_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
void ib_disconnect(struct st_btl_endpoint *ep);
struct ib_peer *ib_peer_get(struct ib_module *m, int rank); /* made if need be; NULL: no memory */
void ib_peer_broken(struct ib_peer *p, const char *why);    /* reported at the end of progress */
void ib_report_broken(struct ib_module *m);
int ib_card_fetch(struct ib_module *m, int rank, struct ib_card *out, char *why, size_t why_size);

/* ---- connect.c: the state machine; datagram.c: what it talks by ---- */
int ib_wire_up_begin(struct ib_peer *p); /* on the first send */
void ib_wire_up_end(struct ib_peer *p);
void ib_wire_up_take(struct ib_module *m, const struct ib_conn *c);
void ib_wire_up_timers(struct ib_module *m);
void ib_wire_up_heard(struct ib_peer *p); /* its first message has come */
int ib_datagrams_open(struct ib_module *m);
void ib_datagrams_close(struct ib_module *m);
int ib_datagram_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c);
int ib_datagrams_poll(struct ib_module *m);
int ib_datagrams_arm(struct ib_module *m);
size_t ib_datagrams_bytes(const struct ib_module *m);

/* ---- teardown.c ---- */
void ib_teardown_begin(struct ib_peer *p);    /* nothing unless it is up */
void ib_teardown_asked(struct ib_peer *p);    /* the peer wants to close, and has finished */
void ib_teardown_answered(struct ib_peer *p); /* it has finished, too */
/* `quiet`: the completion queues were found empty. */
void ib_teardown_progress(struct ib_module *m, bool quiet);
/* The peer asks for a new connection: true when the old one could be ended at once. */
bool ib_teardown_hurry(struct ib_peer *p);
/* Whether p may be connected now; where there are too many, the least recently used one is asked to go. */
bool ib_room_for_connection(struct ib_module *m, struct ib_peer *p);
bool ib_room_for_request(struct ib_module *m, struct ib_peer *p); /* the same for one who asks us */

/* ---- send.c ---- */
int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len);
int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload);
int ib_send_control(struct ib_peer *p, enum ib_control kind);
void ib_send_credits(struct ib_module *m); /* to all that are owed many */
void ib_owe(struct ib_qp *q);              /* one more message of it was consumed */

/* ---- rdma.c ---- */
int ib_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int ib_reg(struct st_btl *btl, void *base, size_t len, struct st_btl_reg *out);
void ib_dereg(struct st_btl *btl, struct st_btl_reg *reg);
void ib_rdma_progress(struct ib_module *m);
void ib_rdma_ended(struct ib_rdma *r, int rc);
void ib_rdma_cancel(struct ib_peer *p);

/* ---- progress.c ---- */
int ib_progress(struct st_btl *btl);
int ib_arm(struct st_btl *btl, struct st_btl_wait *w);
void ib_disarm(struct st_btl *btl);
/* Ends all that was posted and has not ended, with rc for operations. */
void ib_sent_drop(struct ib_qp *q, int rc);

/* ---- async.c ---- */
void ib_async_poll(struct ib_module *m);

/* ---- report.c ---- */
void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif
