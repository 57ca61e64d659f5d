/* A peer: its state, its two queue pairs with what is posted to them, and what is known of its connection. */
#ifndef IB_PEER_H
#define IB_PEER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/rank_table.h>
#include "params.h"
#include "wire.h"

struct ib_buffer;
struct ib_module;
struct ib_queue;

/* Work requests kept back for control messages. */
#define IB_CONTROL_SENDS 4u

enum ib_sent_kind { IB_SENT_NOTHING, IB_SENT_BUFFER, IB_SENT_OP, IB_SENT_RDMA, IB_SENT_ZCOPY };
/* A signalled work request: its end is the end of `what`, and of all requests before it. */
struct ib_sent {
    void *what; /* struct ib_buffer, struct st_btl_op, struct ib_rdma or struct ib_zcopy */
    uint32_t up_to;
    uint8_t kind;
};
#define IB_KEPT_WORDS 3u
/* A header that both ends keep: imm_head.h. */
struct ib_kept_hdr {
    uint64_t word[IB_KEPT_WORDS];
    uint32_t len; /* bytes; 0: none */
    uint8_t am;   /* enum st_am: whose header it is */
};
#define IB_NO_PACKETS (1u << 31)
struct ib_qp {
    struct ibv_qp *qp;
    struct ib_peer *peer;
    uint32_t credits;      /* messages that the peer has room for */
    uint32_t most_credits; /* as many as the peer gave at first: there are never more */
    uint32_t crowded_at;   /* threshold of credits for a crowd of short messages: crowd.c */
    uint32_t notice_at;    /* credits at which ib_crowded is called; 0: not until more come */
    uint64_t noticed_ns;   /* last call of ib_crowded */
    uint32_t posted, done; /* work requests ever; posted - done <= depth */
    uint32_t depth;
    uint32_t every;   /* one of so many is signalled in any case; a power of two, less 1 */
    uint32_t number;  /* of the queue pair */
    uint32_t granted; /* messages that the peer may have in flight */
    uint32_t window;  /* sends a credit message once this many credits are owed */
    uint8_t priority;
    struct ib_sent *sent;    /* ring of the signalled ones */
    uint32_t signals, ended; /* of those, ever */
    uint32_t mask;           /* of the ring */
    uint32_t receives;       /* posted to its own receive queue */
    uint32_t received;       /* messages, ever, also by eager RDMA */
    uint32_t messages;       /* of low priority: sent, ever */
    uint32_t packet;         /* bytes of data: the path's MTU, or IB_NO_PACKETS */
    struct ib_kept_hdr said, heard;
    struct ib_ring_in *ring; /* high priority: the ring of eager RDMA that was granted to the peer; NULL: none */
};
/* Work requests that the send queue has room for. */
static inline uint32_t ib_qp_room(const struct ib_qp *q)
{
    return q->depth - (q->posted - q->done);
}
/* wr_id of a send request: odd. That of a receive is the address of a buffer. */
static inline uint64_t ib_wr_id(const struct ib_qp *q)
{
    return (uintptr_t)q | 1u;
}
static inline bool ib_is_send(uint64_t wr_id)
{
    return wr_id & 1;
}
static inline struct ib_qp *ib_sender(uint64_t wr_id)
{
    return (struct ib_qp *)(uintptr_t)(wr_id & ~(uint64_t)1);
}
/* Notes a signalled work request that was posted. */
static inline void ib_posted(struct ib_qp *q, void *what, enum ib_sent_kind kind)
{
    q->posted++;
    q->sent[q->signals++ & q->mask] = (struct ib_sent){what, q->posted, (uint8_t)kind};
}

/* Peers by the number of a queue pair: a hash table with open addressing. */
struct ib_qp_map {
    struct ib_qp **slot;
    uint32_t mask, n;
};

/* The queue pairs of a module. */
struct ib_qps {
    struct ib_qp_map map;
    uint32_t n_peers;    /* with queue pairs */
    uint32_t max_inline; /* bytes: to be asked for until inline_known, then what queue pairs have */
    bool inline_known;   /* a queue pair has been made */
};

/* ---- qp_map.c ---- */
int ib_qp_map_init(struct ib_qp_map *map);
void ib_qp_map_destroy(struct ib_qp_map *map);
int ib_qp_map_add(struct ib_qp_map *map, struct ib_qp *q);
void ib_qp_map_remove(struct ib_qp_map *map, uint32_t qpn);
struct ib_qp *ib_qp_map_find(const struct ib_qp_map *map, uint32_t qpn); /* NULL: there is none */

/* ---- qp.c: the two queue pairs of a peer ---- */
int ib_qps_make(struct ib_peer *p);
int ib_qps_connect(struct ib_peer *p, const struct ib_conn *theirs, const struct ibv_ah_attr *path); /* to RTS */
/* All that was posted to send has ended. Not used: they were never connected, and their receive buffers come back. */
void ib_qps_destroy(struct ib_peer *p, bool used);
void ib_qps_error(struct ib_peer *p); /* to the error state: all that is posted is flushed */

/* ---- receive_queue.c: receive queues per peer, and consumed buffers ---- */
int ib_rq_fill(struct ib_queue *queue, struct ib_qp *q);
/* A buffer that an error has brought; q NULL: its queue pair has gone. */
void ib_rq_lost(struct ib_queue *queue, struct ib_qp *q, struct ib_buffer *b);
/* A consumed buffer that was put into queue->again: posts all of these, to the SRQ or the peer's own queue. */
void ib_rq_repost(struct ib_queue *queue, struct ib_buffer *b);

/* States of a peer: docs/design/openib-connections.md. */
enum ib_state {
    IB_IDLE,
    IB_ASKING,
    IB_ANSWERED,
    IB_UP,
    IB_DRAINING,       /* closing: low priority is still in flight */
    IB_ASKED_TO_CLOSE, /* our CLOSE is sent */
    IB_CONSENTING,     /* the peer sent CLOSE: low priority is still in flight */
    IB_CONSENTED,      /* our CLOSE TOO is sent */
    IB_CLOSED,         /* the queue pairs can go */
    IB_GONE,           /* it sent BYE */
    IB_FAILED
};
static inline bool ib_is_closing(uint8_t state)
{
    return state >= IB_DRAINING && state <= IB_CLOSED;
}

/* Credits of high priority while messages of low priority are in flight: reorder_limit.c. */
struct ib_reorder {
    bool on;
    uint32_t left, withheld; /* credits: still to be given out, and held back */
    uint32_t until;          /* so many work requests of low priority have ended */
};

struct ib_peer {
    struct st_btl_endpoint ep;
    uint8_t state;
    bool usual;     /* up, no credits withheld, no crowd noted: credits are only added */
    bool owing;     /* in the list of those to get a credit message */
    bool left;      /* it sent BYE: errors are no news */
    bool counted;   /* in ib_qps.n_peers */
    bool ringless;  /* it has returned a ring of eager RDMA at once: it gets none */
    uint16_t slots; /* free ones of the ring that it has granted; 0: none, or no ring */
    union {         /* to be returned to it; the rest of a head, and struct ib_footer */
        struct {
            uint16_t owed[IB_PRIORITIES]; /* credits: its messages consumed here */
            uint8_t owed_control;         /* 0 */
            uint8_t owed_slots;           /* freed here, of the ring that it was granted */
            uint16_t owed_none;           /* 0 */
        };
        uint64_t owed_all;
    };
    struct ib_qp q[IB_PRIORITIES];
    struct ib_ring_out *ring_out; /* of eager RDMA; NULL: it has granted none yet */
    struct ib_reorder reorder;
    struct ib_peer *next_owing;
    struct ib_peer *next; /* all of the module */
    const char *error;    /* found, to be reported at the end of progress */
    uint32_t heard;       /* messages of it at the last look of keepalive.c */
    uint32_t seen;        /* work requests and messages when the clock hand of conn_evict.c came by */
    /* Connecting: */
    struct ib_wire_up *up;
    struct ib_address *moved; /* its address, where it is not what its card says */
    uint32_t mine, theirs;    /* ids of the attempt that made the connection; 0: none */
    uint32_t latest;          /* highest id of its attempts: they only grow */
    uint32_t turned_away;     /* id of its request that was last answered by BUSY; 0: none */
    uint64_t waits_since;     /* ns; for another connection to go */
    uint64_t short_since;     /* ns; for queue pairs that the device does not give; 0: it does */
    uint32_t ring_refused;    /* word of a ring that it granted, and that is not used here; 0: none, or it was told */
    int refusal;              /* errno of the last queue pair that could not be made */
    bool misfit;              /* its card does not fit ours, which was logged */
    /* Closing and failing: */
    bool mending;           /* failed; idle again once its queue pairs have been polled to the end */
    bool remade;            /* the connection in the making is not the first: the last one failed */
    bool flushing;          /* closed; its own receives are to come back */
    bool told;              /* FAILED came from it */
    uint8_t quiet;          /* looks of keepalive.c in a row that found no new message of it */
    uint64_t failed_ns;     /* when it failed */
    uint64_t word_ns;       /* when an out-of-band CLOSE overtook data in flight; 0: it did not */
    uint32_t last_low;      /* messages of low priority that it has sent in all, as its CLOSE says */
    uint32_t agreed;        /* id of the peer's attempt that made the last connection closed in agreement */
    uint32_t closing_round; /* round of polling in which the last of its messages had come */
};

_Static_assert(offsetof(struct ib_peer, owed_slots) - offsetof(struct ib_peer, owed) ==
                   offsetof(struct ib_head, slots) - offsetof(struct ib_head, credits),
               "what is owed is copied to a head");

/* All peers of a module. */
struct ib_peers {
    struct st_rank_table table;
    struct ib_peer *all;
    uint32_t n;
    bool broken; /* some peer has an error to be reported */
};

static inline struct ib_peer *ib_peer(struct st_btl_endpoint *ep)
{
    return (struct ib_peer *)(void *)ep;
}

/* ---- peer.c ---- */
struct ib_peer *ib_peer_find(const struct ib_module *m, int rank); /* NULL: there is none */
struct ib_peer *ib_peer_get(struct ib_module *m, int rank);        /* made if need be; NULL: no memory */
/* The connection has failed: reported at the end of progress. The first reason counts. */
void ib_peer_broken(struct ib_peer *p, const char *why);

#endif
