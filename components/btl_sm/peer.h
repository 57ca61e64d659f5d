/* An attached process: the object, finding it, letting go of it. */
#ifndef SM_PEER_H
#define SM_PEER_H

#include <strata/sdk/btl.h>
#include <strata/sdk/hot_peers.h>
#include "queue.h"
#include "ring.h"

struct sm_map;
struct sm_module;

enum { SM_ATTACHED_PROC = 1, SM_ATTACHED_SOCKET = 2 };

/* An attached process. Made on first contact in either direction; its endpoint counts once `connected`. Reading its
 * cells takes the mapping only; to send I need an entry in its directory: `my_index`. */
struct sm_peer {
    struct st_btl_endpoint ep;
    /* Sending: the first lines. */
    _Atomic(uint32_t) *grant; /* my word in the peer's segment; without an entry there, the module's no_grant */
    struct st_hot_grant hot;  /* .word: the grant under which tx is valid */
    uint32_t my_index;        /* of my entry in the peer's directory, or SM_DIR_NONE */
    uint32_t left_index;      /* an entry that I have left and may enter again, or SM_DIR_NONE */
    struct sm_header *header; /* of the peer's segment */
    struct sm_ring_tx tx;
    struct sm_slot *slots; /* of the peer's shared queue */
    uint32_t n_slots;
    uint32_t max_send; /* longest payload that the peer's rings take */
    uint32_t movs_min; /* from which length REP MOVSB copies best here */
    /* Seldom. */
    uint8_t *base;
    struct sm_geometry geometry;
    uint32_t pid;
    uint8_t attached_by;
    uint8_t distance; /* enum sm_distance */
    bool connected, failed;
    bool foreign_pid;      /* its pid counts in another namespace */
    bool missed, died;     /* its process was not found once; has ended without a word, which was reported */
    bool gone;             /* has ended: nothing of it is mapped any more; only the endpoint is left */
    uint8_t wants;         /* SM_WANTS_*: room.c */
    uint8_t single_copy;   /* enum sm_single_copy in force; never AUTO */
    uint8_t calls_in_vain; /* for help, in a row; and what was done without one since: coop.c */
    struct {
        bool ring;
        uint8_t single_copy;
    } was;                   /* once it is gone: how it was reached, for the report */
    const char *no_copy_why; /* why it is off */
    struct sm_map *maps;     /* its memory that is mapped here: peer_maps.c */
    struct sm_peer *next;
};
_Static_assert(sizeof(struct sm_peer) <= 256, "memory per peer is a budget");

static inline struct sm_peer *sm_peer(struct st_btl_endpoint *ep)
{
    return (struct sm_peer *)(void *)ep;
}

/* peer.c */
struct sm_peer *sm_peer_find(const struct sm_module *m, int rank); /* NULL: not attached */
/* The attached process of a rank; logs why when it cannot be attached. */
int sm_peer_get(struct sm_module *m, int rank, struct sm_peer **out);
/* The peer behind a known entry of my directory, or of a rank, attached if need be; NULL when that fails (reported). */
struct sm_peer *sm_peer_at(struct sm_module *m, uint32_t src);
struct sm_peer *sm_peer_of(struct sm_module *m, int rank);
void sm_peer_violation(struct sm_module *m, int rank, const char *what);
/* The kernel says that its process is no more: reported once. What it had sent is still taken. */
void sm_peer_died(struct sm_peer *p);

/* endpoint.c */
int sm_reach(struct st_btl *btl, int rank);
int sm_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
void sm_disconnect(struct st_btl_endpoint *ep);

/* tidy.c */
/* Looks after those who have left or died: entries of mine, their memory mapped here. Not from inside a callback. */
void sm_tidy(struct sm_module *m);
void sm_peers_close(struct sm_module *m);

#endif
