/* Messages between the coll_arrival of two processes: active messages of ST_AM_COLL, for processes of one
 * architecture. `src` is the sender's rank in the communicator, checked against whom the transport knows; of blocks
 * between the leaders of nodes, and their adverts, the rank plus the communicator's size. */
#ifndef COLL_ARRIVAL_WIRE_H
#define COLL_ARRIVAL_WIRE_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/coll.h>

enum arrival_type {
    ARRIVAL_DATA = ST_COLL_OWN, /* wire_data; payload: bytes of a block, none of an empty one */
    ARRIVAL_ADVERT,             /* wire_advert; payload: the key when ARRIVAL_PUT */
    ARRIVAL_STOP,               /* wire_stop: nothing more is put where the receiver's advert of that epoch says */
    ARRIVAL_WITHDRAW,           /* wire_stop: the sender's group has failed. Who does not have the communicator answers
                                 * the advert of that epoch by a stop, others do so when they learn of the failure */
    ARRIVAL_VOTE,               /* wire_stop, to member 0: whether the sender has mapped its node's area */
    ARRIVAL_AGREED,             /* wire_stop, of member 0: whether all have */
    ARRIVAL_CREDIT              /* wire_credit: the sender has begun that epoch */
};

enum { ARRIVAL_PUT = 1u << 0 }; /* wire_advert: the sender of the block may put it */

struct wire_data {
    uint8_t type, waited; /* struct came */
    uint16_t epoch;
    uint32_t comm;
    int32_t src;
    uint32_t id;     /* of the sender's slot, which a credit says */
    uint64_t total;  /* bytes of the block */
    uint64_t offset; /* of this part */
};

struct wire_advert {
    uint8_t type, flags;
    uint16_t epoch;
    uint32_t comm;
    int32_t src;
    uint32_t cell;    /* bytes of a landing cell for the receiver of this, in all later calls */
    uint64_t address; /* where the block goes */
    uint64_t length;  /* bytes of the block */
    uint32_t notice;  /* of the put */
    uint32_t module;  /* hash of the transport's name that the key is for */
};

struct wire_stop {
    uint8_t type;
    uint8_t yes; /* of ARRIVAL_VOTE and ARRIVAL_AGREED; of ARRIVAL_STOP: pieces of the block that were put before */
    uint16_t epoch;
    uint32_t comm;
    int32_t src;
};

struct wire_credit {
    uint8_t type, spare;
    uint16_t epoch;
    uint32_t comm;
    int32_t src;
    uint32_t id; /* of the receiver's slot: a number of a communicator may have been used again */
};

_Static_assert(sizeof(struct wire_data) == 32 && sizeof(struct wire_advert) == 40, "no padding");
_Static_assert(sizeof(struct wire_stop) == 12 && sizeof(struct wire_credit) == 16, "no padding");
_Static_assert(sizeof(struct wire_advert) <= ST_BTL_HDR_MAX, "every header fits an active message");

#endif
