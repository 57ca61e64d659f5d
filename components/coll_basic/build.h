/* Builders: each adds the steps of an operation to a schedule. */
#ifndef COLL_BASIC_BUILD_H
#define COLL_BASIC_BUILD_H

#include "choose.h"
#include "schedule.h"

/* In rounded.c. */
void basic_barrier(struct schedule *s);
void basic_allreduce_doubling(struct schedule *s);
void basic_scan(struct schedule *s);
/* In tree.c. */
void basic_bcast(struct schedule *s, enum basic_algorithm a);
void basic_reduce_to(struct schedule *s, const void *in, void *out, size_t bytes, int root);
/* In ring.c. */
void basic_allreduce_ring(struct schedule *s);
/* In exchange.c: the kinds in which every rank has a block for others. */
void basic_exchange(struct schedule *s, enum basic_algorithm a);
/* In inter.c: every operation of an intercommunicator. */
void basic_inter(struct schedule *s, enum basic_algorithm a);

#endif
