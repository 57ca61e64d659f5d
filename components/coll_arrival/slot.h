/* Communicators and their members: epochs, landing cells, what has come of each member. All with the worker's lock
 * held, if nothing else is said. */
#ifndef COLL_ARRIVAL_SLOT_H
#define COLL_ARRIVAL_SLOT_H

#include <strata/sdk/list.h>
#include "choose.h"
#include "counters.h"
#include "nodes.h"
#include "wire.h"

enum arrival_scheme { SCHEME_AUTO, SCHEME_COPY, SCHEME_ZCOPY };

struct config {
    int form;   /* enum arrival_form */
    int scheme; /* enum arrival_scheme */
    size_t cell, memory, put_min, shm_block, shm_auto, bcast_auto, allgather_auto, allreduce_once, piece;
    int64_t ranks, first_epoch, skew_max;
    char *table;
};

/* An advert that came before the communicator had its first collective here. */
struct early {
    struct early *next;
    int rank; /* of the job */
    struct wire_advert advert;
    uint8_t key[ST_BTL_KEY_MAX];
};

struct arrival {
    struct st_coll base;
    struct st_worker *w;
    struct config config;
    struct arrival_choice choice;
    struct arrival_rule *rules; /* of the user's table, or NULL */
    struct st_node slots;       /* struct slot */
    struct early *early;        /* newest first */
    unsigned n_early;
    uint32_t *retired; /* communicators that were freed after a failure */
    size_t n_retired;
    uint32_t next_id;      /* of a slot, in notices */
    bool lost;             /* a slot has `lost` set */
    ST_ATOMIC(int) active; /* slots that have to look at shared memory, or at cards, or to copy */
    size_t cell_bytes;     /* landing cells of all communicators */
    size_t area_bytes;     /* own areas of all communicators (nodes.h) */
    size_t bytes;          /* everything else */
    struct st_counting counting;
    uint64_t counted[ARRIVAL_N_COUNTERS];
};

/* Arrivals of an entry in one epoch. */
struct came {
    uint64_t total, got; /* bytes of its block */
    bool begun;          /* total is known */
    bool in_cell;        /* the block is in the landing cell */
    bool whole;          /* all of it is here */
    bool advertised;     /* `advert` is set and was not answered */
    uint8_t waited;      /* class of the sender's time in the call before, or of the longest of its node */
    struct wire_advert advert;
    uint8_t key[ST_BTL_KEY_MAX];
};

/* An entry for each member, at its rank: for blocks between the two. With nodes a second one, at rank + n: for blocks
 * of whole nodes, between leaders. */
struct member {
    struct st_peer *peer; /* NULL: myself */
    bool met;             /* an advert of it has come: `cell` is known */
    bool greeted;         /* an advert has gone there: it knows this member's cells */
    bool known;           /* `id` is */
    uint32_t id;          /* of its slot */
    uint64_t seen;        /* calls that it is known to have begun, if slot->all_begun is not more */
    uint64_t told;        /* calls that it knows this member to have begun, if all_begun is not more */
    uint32_t cell;        /* bytes of its landing cells for me */
    struct came came[2];  /* by parity of the epoch */
};

/* Members that a call is known from at its end. The skew may change only where all members know it. */
enum call_reach {
    REACH_ALL,   /* each member has told each other its `waited` */
    REACH_BEGUN, /* in rounds: all have begun; a member has the `waited` of those alone that send to it */
    REACH_ROOT   /* a rooted call: some members may not have begun */
};

struct slot {
    struct st_coll_slot base;
    struct arrival *a;
    struct st_node node;
    uint32_t id;         /* in notices */
    uint16_t epoch;      /* of the call under way, or of the next */
    uint64_t all_begun;  /* calls that all members have begun, and know of each other to have */
    bool begun;          /* the first call has begun: landing cells are there */
    bool counted;        /* in arrival->active */
    int lost;            /* member whose path was lost, or -1 */
    uint32_t cell;       /* bytes of a landing cell, 0: there are none */
    char *cells;         /* two for each of the first n_cells entries */
    struct nodes *nodes; /* NULL: blocks go straight */
    uint64_t call;       /* number of the call under way, or of the next */
    uint8_t waited;      /* class of this member's time in the last call (choose.h) */
    uint8_t skew;        /* longest such time of all in the call before that, or an earlier one: the same at all */
    struct st_node ops;  /* struct op; the first is under way */
    int n;               /* members */
    int n_all;           /* entries: n, or 2 n with nodes */
    int n_cells;         /* entries that have cells */
    struct member member[];
};

/* A notice is the slot's id, a bit for blocks of whole nodes, and the epoch's parity; from bit NOTICE_WAITED on, which
 * the sender of the block fills in, its `waited`, or the number of the piece that was put. */
enum { NOTICE_IDS = 1 << 22, NOTICE_WAITED = 24 };

/* Without the lock only slot_detach. */
int slot_attach(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out);
void slot_detach(struct st_coll_slot *slot);
/* Before the first call: landing cells as large as the parameters and the memory that is left allow. */
void slot_make_cells(struct slot *s);
/* An entry's member has begun that epoch. Returns whether blocks may go there now that might not before. */
bool slot_heard(struct slot *s, int entry, uint16_t epoch);
struct slot *slot_of_comm(struct arrival *a, uint32_t comm);
struct slot *slot_of_id(struct arrival *a, uint32_t id);
/* The member of that rank of the job, or -1. */
int slot_member_of(const struct slot *s, int job_rank);
/* The epoch of a call is over: its generation of cells is empty again. */
void slot_next_epoch(struct slot *s, enum call_reach reach);

static inline char *slot_cell(const struct slot *s, int member, uint16_t epoch)
{
    return s->cells + ((size_t)member * 2 + (epoch & 1u)) * s->cell;
}
static inline int slot_job_rank(const struct slot *s, int member)
{
    const strata_comm_t *comm = s->base.group->comm;
    return comm->world ? comm->world[member] : member;
}
/* Whether a block of the present call may go to an entry: its member has begun the call before, so that its cells of
 * the call before that are empty. */
static inline bool slot_may_send(const struct slot *s, int entry)
{
    return s->all_begun >= s->call || s->member[entry < s->n ? entry : entry - s->n].seen >= s->call;
}
/* Whether all members know of each other that they have begun the call before: it was not a rooted one. */
static inline bool slot_is_even(const struct slot *s)
{
    return s->all_begun >= s->call;
}
/* An advert of the present epoch that was not answered. */
static inline bool slot_has_advert(const struct slot *s, int entry)
{
    const struct came *came = &s->member[entry].came[s->epoch & 1u];
    return came->advertised && came->advert.epoch == s->epoch;
}
/* The rank of an entry's member. */
static inline int slot_rank(const struct slot *s, int entry)
{
    return entry < s->n ? entry : entry - s->n;
}
static inline bool slot_failed(const struct slot *s)
{
    return atomic_load(&s->base.group->failed) >= 0;
}
/* Whether calls may begin. While the cards are under way, or a thread works on them outside the lock, the call that
 * waits keeps the slot from being freed. */
static inline bool slot_ready(const struct slot *s)
{
    return !s->nodes || s->nodes->stage == NODES_AGREED || (s->nodes->stage == NODES_VOTES && slot_failed(s));
}

/* message.c: sends a control message, now or later. */
void arrival_tell(struct arrival *a, struct st_peer *peer, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len);
/* After a failure: no more than `pieces` of its block were put where the member's advert says. */
void arrival_tell_stop(struct slot *s, int member, uint16_t epoch, uint8_t pieces);
void arrival_tell_withdraw(struct slot *s, int member);
/* agree.c. Without the lock: begins the allgather of cards; *req becomes nodes->cards_req. */
int arrival_agree_begin(struct slot *s, strata_coll_request_t **req);
/* Whether arrival_agree_outside has something to do: maps the area; gives the lock back meanwhile. */
bool arrival_agree_due(const struct slot *s);
void arrival_agree_outside(struct slot *s);
/* A vote, or the result of all. Returns what is wrong with it, or NULL. */
const char *arrival_agree_heard(struct slot *s, int member, const struct wire_stop *h);
/* early.c */
void early_hold(struct arrival *a, int rank, const struct wire_advert *advert, const void *key);
/* The rank gives up its advert. */
void early_withdraw(struct arrival *a, int rank, const struct wire_stop *withdraw);
void early_replay(struct slot *s);
void early_forget(struct arrival *a);
bool early_is_retired(const struct arrival *a, uint32_t comm);
void early_retire(struct arrival *a, uint32_t comm);
/* A communicator with that id has been created: adverts of it are held again. */
void early_created(struct st_coll *coll, uint32_t comm);
/* One has been freed, perhaps without a call here: its adverts, which nobody withdraws where no puts answer them, are
 * not for the next one of that id. */
void early_freed(struct st_coll *coll, uint32_t comm);

#endif
