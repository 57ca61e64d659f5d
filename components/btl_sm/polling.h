/* The rings of this process: who has one, which are polled. */
#ifndef SM_POLLING_H
#define SM_POLLING_H

#include <stdint.h>
#include "segment.h"

struct sm_module;

#define SM_RING_BATCH   32u /* most messages of a ring in one progress */
#define SM_REPORT_EVERY 64u /* from so many messages on since the last report, sm_ring_report is called */

/* Messages by a ring may overtake those that the same sender has sent by the shared queue before it had the ring, and
 * would do so without end while a process that is stopped has claimed the head of the queue. Each report of a ring
 * looks whether that is so, and then the ring is not polled until the queue has been read so far. This many messages
 * are read by the ring meanwhile. */
#define SM_RING_AHEAD (SM_REPORT_EVERY - 1 + SM_RING_BATCH)

/* How far out of order messages of one sender come: while one has not been handed over, of those that were sent after
 * it only some of the next so many have been. The queue is full of messages, the ring reads ahead, or has all to its
 * BYE read; or, the other way round, what came by the ring before its BYE waits for two rounds of the queue. `g`: the
 * receiver's. */
static inline uint32_t sm_out_of_order_max(const struct sm_geometry *g)
{
    return g->queue_slots + 2 * g->ring_slots + SM_RING_AHEAD;
}

int sm_rings_open(struct sm_module *m);
void sm_rings_close(struct sm_module *m);
void sm_shared_arrival(struct sm_module *m, uint32_t local);
/* Messages have come by the ring since the last report. */
void sm_ring_report(struct sm_module *m, uint32_t ring);
void sm_rings_release(struct sm_module *m);            /* polls those again that need not wait for the queue any more */
void sm_ring_left(struct sm_module *m, uint32_t ring); /* the sender's BYE has been read */
void sm_ring_broken(struct sm_module *m, uint32_t ring); /* not to be polled again */

#endif
