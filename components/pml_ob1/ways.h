/* Which way each message to a peer would take: by its length and by the class of traffic it belongs to (flow.h). For
 * reports: what a message really does is decided when it starts and when it has matched, by the same function. */
#ifndef OB1_WAYS_H
#define OB1_WAYS_H

#include "choose.h"
#include "flow.h"
#include "thresholds.h"

#define OB1_CLASSES 3 /* enum ob1_class */
/* A way begins at 0 or at one of the seven thresholds. */
#define OB1_WAYS_MOST 8

/* Contiguous messages from `from` bytes up to the next way go so. */
struct ob1_way_step {
    uint64_t from;
    enum ob1_protocol start;  /* at the sender */
    enum ob1_protocol answer; /* at the receiver; OB1_P_NOTHING where the message is not announced */
    const char *limit;        /* name of the threshold that ends the way before; NULL for the first */
};

struct ob1_ways_of {
    enum ob1_rndv wanted;
    uint32_t caps;
    struct st_thresholds limits; /* the user's settings applied */
};

/* Fills `out` in the order of `from`; returns the number of ways, at least 1. Pure. */
size_t ob1_ways(const struct ob1_ways_of *of, enum ob1_class traffic, struct ob1_way_step out[OB1_WAYS_MOST]);
/* "alone", "window", "crosses". */
const char *ob1_class_name(enum ob1_class traffic);

#endif
