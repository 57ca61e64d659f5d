/* The module. */
#ifndef SM_H
#define SM_H

#include <strata/sdk/btl.h>
#include "attach.h"
#include "copy_facts.h"
#include "op_list.h"
#include "params.h"
#include "peer.h"
#include "queue.h"
#include "ring.h"

/* What I believe of an entry of my directory. */
struct sm_sender {
    struct sm_peer *peer; /* NULL: not attached */
    uint32_t name;        /* rank + 1; 0: nothing yet */
    uint32_t pid : 24;    /* 0: it cannot be looked for, or has not been asked for; liveness.c */
    uint32_t asked : 1, missed : 1, told : 1;
};
_Static_assert(sizeof(struct sm_sender) <= 16, "memory per peer is a budget");

enum sm_sweep { SM_SWEEP_NOT, SM_SWEEP, SM_SWEEP_DEAD };

struct sm_help;

/* Costs of copies at a distance: calibrate.c, learn.c. */
struct sm_costs {
    size_t rdma;   /* st_btl_facts.rdma_cost, .alone_cost */
    size_t chosen; /* rdma, but in a trial */
    uint32_t alone;
    bool known, taken_over;     /* from a peer that had measured */
    bool drains, fills;         /* ring, fill: of fragments that came, or went, here; else what the other end says */
    bool changed;               /* the worker has not been told */
    bool tries, result;         /* a trial of the other way goes on; it has brought a time */
    bool steady;                /* there are no trials: another part tries ways */
    uint8_t patience;           /* trials are 2^patience times as rare */
    uint64_t due;               /* bytes to come by the way in use until the next trial */
    uint64_t tried;             /* bytes by the other one in this trial */
    uint64_t until;             /* when a trial ends in any case, st_now_ns */
    struct sm_copy_times times; /* zeros: not measured */
    struct sm_part_times ring, fill, copy, small;
};

/* A message by the shared queue: index of its sender in the directory, and payload that would lie in a ring's data
 * area. */
struct sm_arrival {
    uint32_t local, len;
};
#define SM_ARRIVALS 16u

struct sm_module {
    struct st_btl btl;
    const struct sm_params *par;
    struct st_rte *rte;
    struct sm_segment seg;
    struct sm_header *header;
    struct sm_queue_rx queue;

    /* Rings of mine, polled in this order. */
    struct sm_ring_rx *rings;
    struct sm_ring_rx **order;
    uint32_t n_rings, n_order, n_held; /* n_held: rings that wait for the shared queue, and are not in `order` */
    struct st_hot hot;                 /* who has which */
    /* Messages by the shared queue of which `hot` has not been told, and the one of which it is being told. */
    struct sm_arrival arrivals[SM_ARRIVALS], arrival;
    uint32_t n_arrivals;

    /* Processes of this machine. */
    struct sm_dir_entry *dir; /* in the segment */
    uint32_t n_dir;
    struct sm_sender *senders;   /* by index in the directory */
    struct sm_peer *peers;       /* list of those attached */
    uint32_t n_peers, newcomers; /* newcomers: peers and senders since the dead were last looked for */
    uint32_t leavers_seen, crowd_seen;
    uint8_t sweep_again; /* enum sm_sweep: entries were left that could not be taken back yet */
    bool collect;        /* a peer may have become useless */
    _Atomic(uint32_t) no_grant;

    /* Cells of mine. */
    uint32_t n_cells_ready, cell_hint;
    int *cell_to; /* by cell: the rank it went to last */

    /* Slow things that progress looks after when there are any. */
    uint32_t work; /* number of them: single copies, notices, helps, nudges, rings held, arrivals, costs */
    uint32_t idle; /* progress calls that found nothing */
    struct sm_doubt *doubts;
    int64_t look_at_ms;             /* when processes are looked for next: liveness.c */
    struct sm_op_list ops, notices; /* notices: their data has gone, and there is no room for the message */
    struct sm_help *helps, *helps_last;
    uint32_t coop_used; /* bitmap of coop descriptors in use */
    uint32_t coop_generation;
    uint32_t movs_min;
    uint32_t n_maps;   /* of peers' memory: peer_maps.c */
    uint64_t map_uses; /* counted, to know which is the oldest */
    struct sm_costs costs[SM_DISTANCES];
    uint32_t long_fragments; /* out of rings: each eighth is timed */
    uint32_t long_sent;      /* into rings: each eighth is timed */

    struct sm_card card;
    int listen_fd;
    int wake_fd;  /* wake_socket.c; or -1 */
    bool woken;   /* somebody has woken me: it may hold a wake */
    bool wanting; /* some peer `wants` */
    struct {
        uint64_t ring, queue, cell, again, violations, demotions, coop, one_sided, stored, helped, promoted, revoked,
            wakes, sleeps, taken_back, held;
    } count;
    struct st_counting counting;
};

static inline struct sm_module *sm_module(struct st_btl *btl)
{
    return (struct sm_module *)(void *)btl;
}

/* pending.c */
bool sm_pending(struct sm_module *m); /* something has arrived, or there is slow work to do */

#endif
