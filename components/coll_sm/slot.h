/* Communicators whose members share a machine. Members agree at the first operation, which is one of the next component
 * (an allgather of cards): all of them map all areas, or none uses them. Until then operations wait in a queue. */
#ifndef COLL_SM_SLOT_H
#define COLL_SM_SLOT_H

#include <strata/sdk/coll.h>
#include <strata/sdk/component.h>
#include <strata/sdk/list.h>
#include "area.h"
#include "counters.h"

struct config {
    size_t half, memory, read_min, direct_max;
    int64_t ranks, readers;
    size_t largest[SM_OPS]; /* bytes of a block up to which an operation goes this way; 0: never */
};

struct sm {
    struct st_coll base;
    struct st_worker *w;
    struct config config;
    struct st_node slots;  /* struct slot */
    ST_ATOMIC(int) active; /* slots with something to do */
    size_t area_bytes;     /* own areas of all communicators */
    size_t bytes;          /* everything else */
    struct st_counting counting;
    uint64_t counted[SM_N_COUNTERS];
};

enum slot_stage {
    SLOT_OUT,    /* not for this component: members on other machines, too many of them, or one alone */
    SLOT_NEW,    /* no operation yet */
    SLOT_CARDS,  /* the allgather is under way */
    SLOT_STATES, /* all areas are mapped, or not; others are asked what they could */
    SLOT_READY,  /* agreed: areas */
    SLOT_REFUSED /* agreed: no areas */
};

struct member {
    struct area *at; /* as it is mapped here */
    struct st_shared_mapping mapping;
    uint32_t pid;
};

struct slot {
    struct st_coll_slot base;
    struct sm *sm;
    struct st_node node;
    int n, me;
    int stage;            /* enum slot_stage */
    bool reads;           /* all may read all memory */
    bool outside;         /* a thread works on the queue outside the lock */
    bool counted;         /* in sm->active */
    uint64_t step;        /* of the operation under way, or the next one's */
    size_t half;          /* agreed */
    struct st_node ops;   /* struct op, by areas; the first is under way */
    struct st_node queue; /* struct op, to be begun in turn */
    struct st_node below; /* struct op, under way in the next component */
    strata_coll_request_t *cards_req;
    struct card *cards;
    struct own_area own;
    struct member member[];
};

int cs_slot_attach(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out);
void cs_slot_detach(struct st_coll_slot *slot);
/* agree.c: the first operation. Without the lock: begins the allgather; *req becomes s->cards_req. */
int cs_agree_begin(struct slot *s, strata_coll_request_t **req);
/* agree.c: looks after it. Without the lock. */
void cs_agree_outside(struct slot *s);
/* agree.c: whether all have said what they could; with the lock held. */
void cs_agree_look(struct slot *s);

static inline bool slot_failed(const struct slot *s)
{
    return atomic_load(&s->base.group->failed) >= 0;
}

#endif
