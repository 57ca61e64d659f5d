/* Which way a message to a peer takes, by its length and by the class of traffic it belongs to (flow.h): pure functions
 * that fill the table of ways (table.h) and make reports. */
#ifndef OB1_WAYS_H
#define OB1_WAYS_H

#include "choose.h"
#include "flow.h"
#include "thresholds.h"

#define OB1_CLASSES 4 /* enum ob1_class */
/* A way begins at 0 or at one of the seven thresholds. */
#define OB1_WAYS_MOST 8
/* Of ob1_way_start: it is announced for its class, and to be fetched at once. */
#define OB1_WAY_ASKED 0x80u
/* What of a path's capabilities counts. */
#define OB1_WAY_CAPS (ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG | ST_BTL_REG_KEPT | ST_BTL_REG_CHEAP)

/* Contiguous messages from `from` bytes up to the next way go so. */
struct ob1_way_step {
    uint64_t from;
    enum ob1_protocol start;  /* at the sender */
    enum ob1_protocol answer; /* at the receiver; OB1_P_NOTHING where the message is not announced */
    const char *limit;        /* name of the threshold that ends the way before; NULL for the first */
};

/* A length at which ways may change. */
struct ob1_way_edge {
    uint64_t from;
    const char *limit; /* name of the threshold; NULL: none */
};

struct ob1_ways_of {
    enum ob1_rndv wanted;
    uint32_t caps;               /* OB1_WAY_CAPS */
    uint32_t bandwidth_mbs;      /* of the path: how late is late (answers.h) */
    size_t rdma_cost;            /* of the path, when this was filled in */
    bool learns;                 /* what receivers say counts: OB1_LATE has ways of its own */
    bool tuned;                  /* another has decided which class is announced (tuned.h) */
    struct st_thresholds limits; /* the user's settings applied */
};

/* How a contiguous message of standard mode starts: enum ob1_protocol, and OB1_WAY_ASKED. */
uint8_t ob1_way_start(const struct ob1_ways_of *of, enum ob1_class traffic, uint64_t length);
/* The protocol of an announcement of contiguous memory. */
enum ob1_protocol ob1_way_announced(const struct ob1_ways_of *of);
/* How the receiver fetches such a message into contiguous memory, when it was announced in that way. */
enum ob1_protocol ob1_way_answer(const struct ob1_ways_of *of, bool at_once, uint64_t length);
/* In the order of `from`; thresholds that no message reaches are last, at ST_BTL_RDMA_NEVER or more. */
void ob1_way_edges(const struct ob1_ways_of *of, struct ob1_way_edge edge[OB1_WAYS_MOST]);

/* Fills `out` in the order of `from`; returns the number of ways, at least 1. */
size_t ob1_ways(const struct ob1_ways_of *of, enum ob1_class traffic, struct ob1_way_step out[OB1_WAYS_MOST]);
/* "alone", "window", "crosses", "late". */
const char *ob1_class_name(enum ob1_class traffic);

#endif
