/* Counters of the component, changed with the worker's lock held: which way blocks go. */
#ifndef COLL_ARRIVAL_COUNTERS_H
#define COLL_ARRIVAL_COUNTERS_H

#include <strata/sdk/component.h>

enum arrival_counter {
    COUNT_CALLS,          /* begun */
    COUNT_ADVERTS,        /* sent */
    COUNT_TO_CELLS,       /* blocks sent, that fit the receiver's landing cell */
    COUNT_ON_DEMAND,      /* blocks sent by messages, for an advert without a put */
    COUNT_PUTS,           /* blocks put */
    COUNT_PUT_FALLBACKS,  /* blocks that were to be put and went by messages */
    COUNT_FROM_CELLS,     /* blocks that came before the call had begun, not empty */
    COUNT_STOPS,          /* sent */
    COUNT_REFUSED,        /* messages and notices */
    COUNT_SHM_CALLS,      /* begun, whose short blocks go by leaders */
    COUNT_SKEWED,         /* begun, that form auto leaves to go straight because of an earlier call's skew */
    COUNT_CRATES,         /* blocks of whole nodes sent, among those above */
    COUNT_REFUSED_AREAS,  /* communicators whose members could not all map the area of their node */
    COUNT_CREDITS,        /* sent */
    COUNT_RELAYED,        /* blocks of bcasts sent by leaders that are not the root, among those above */
    COUNT_PIECES_RELAYED, /* times that a leader passed on a part of a block of which more was to come */
    ARRIVAL_N_COUNTERS
};

extern const struct st_counter arrival_counters[ARRIVAL_N_COUNTERS];

#endif
