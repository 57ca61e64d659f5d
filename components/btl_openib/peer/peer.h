/* A peer: its state, its queue pairs, and what is known of its connection. */
#ifndef IB_PEER_H
#define IB_PEER_H

#include <stdbool.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/rank_table.h>
#include "params.h"
#include "peer/qp.h"

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
    bool usual;                   /* up, no credits withheld, no crowd noted: credits are only added */
    bool owing;                   /* in the list of those to get a credit message */
    bool left;                    /* it sent BYE: errors are no news */
    bool counted;                 /* in ib_qps.n_peers */
    bool ringless;                /* it has returned a ring of eager RDMA at once: it gets none */
    uint16_t owed[IB_PRIORITIES]; /* credits to be returned: its messages consumed here. With the next two a head */
    uint8_t owed_control;         /* 0 */
    uint8_t owed_slots;           /* slots to be returned: freed here, of the ring that it was granted */
    uint16_t slots;               /* free ones of the ring that it has granted; 0: none, or no ring */
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
    int refusal;              /* errno of the last queue pair that could not be made */
    bool misfit;              /* its card does not fit ours, which was logged */
    /* Closing and failing: */
    bool mending;           /* failed; idle again once its queue pairs have been polled to the end */
    bool remade;            /* the connection in the making is not the first: the last one failed */
    bool flushing;          /* closed; its own receives are to come back */
    bool told;              /* FAILED came from it */
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
