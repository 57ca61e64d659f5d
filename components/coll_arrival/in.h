/* Arrivals from other members: blocks, adverts, notices. Called with the worker's lock held. */
#ifndef COLL_ARRIVAL_IN_H
#define COLL_ARRIVAL_IN_H

#include "slot.h"

struct op;

/* advert.c. The call begins, or that of its blocks that go between nodes (`base` n, else 0): tells the entries whose
 * blocks do not fit a landing cell where to put them; and those that do not know the size of the cells yet, and
 * credits. */
void in_advertise(struct op *op, int base);
/* And takes what came before it began. */
void in_take_cells(struct op *op, int base);
/* An active message. */
void in_deliver(struct st_coll *coll, const struct st_frag *frag);
/* A put has ended. */
void in_notified(struct st_coll *coll, int rank, uint32_t notice);
/* Keeps an advert for its call; false: it cannot be true. */
bool in_keep_advert(struct slot *s, int rank, const struct wire_advert *advert, const void *key);
/* The group has failed: nothing is put any more where adverts say. */
void in_group_failed(struct slot *s);

#endif
