/* Arrivals from other members: blocks, adverts, notices. Called with the worker's lock held. */
#ifndef COLL_ARRIVAL_IN_H
#define COLL_ARRIVAL_IN_H

#include "slot.h"

struct op;

/* The call begins: tells the members whose blocks do not fit a landing cell where to put them; in the first call of a
 * communicator all members, with the size of the cells. */
void in_advertise(struct op *op, bool first);
/* And takes what came before it began. */
void in_take_cells(struct op *op);
/* An active message. */
void in_deliver(struct st_coll *coll, const struct st_frag *frag);
/* A put has ended. */
void in_notified(struct st_coll *coll, int rank, uint32_t notice);
/* Keeps an advert for its call; false: it cannot be true. */
bool in_keep_advert(struct slot *s, int rank, const struct wire_advert *advert, const void *key);
/* The group has failed: nothing is put any more where adverts say. */
void in_group_failed(struct slot *s);

#endif
