/* The rings of this process: who has one, which are polled. */
#ifndef SM_POLLING_H
#define SM_POLLING_H

#include <strata/sdk/btl.h>
#include "area.h"
#include "params.h"

struct sm_module;

#define SM_RING_BATCH   32u /* most messages of a ring in one progress */
#define SM_REPORT_EVERY 64u /* from so many messages on since the last report, sm_ring_report is called */

/* Messages by a ring may overtake those that the same sender has sent by the shared queue before it had the ring, and
 * would do so without end while a process that is stopped has claimed the head of the queue. Each report of a ring
 * looks whether that is so, and then the ring is not polled until the queue has been read so far. This many messages
 * are read by the ring meanwhile. */
#define SM_RING_AHEAD (SM_REPORT_EVERY - 1 + SM_RING_BATCH)

/* st_btl.max_overtaking, also counting those that have not arrived: while a message has not been handed over, none of
 * the same sender has that was sent more than so many after it. Behind one in the queue: the rest of the queue, and
 * what the ring reads ahead, or all of a ring that ends with a BYE. Behind one in a ring that ends: the rest of the
 * ring, and what the queue reads while the ring is read. And a message for each step that a ring's data area grows. */
#define SM_OVERTAKING (SM_QUEUE_SLOTS_MOST + SM_RING_SLOTS_MOST + SM_RING_AHEAD + SM_AREA_STEPS)
_Static_assert(SM_OVERTAKING <= ST_BTL_OVERTAKING_MOST, "see btl.h");

int sm_rings_open(struct sm_module *m);
void sm_rings_close(struct sm_module *m);
/* A sender is new here: keeps the first memory of one ring ready for the first of those without a ring that gets hot.
 */
void sm_ring_spare(struct sm_module *m);
/* A message came by the shared queue, with len bytes that would lie in a ring's data area. */
void sm_shared_arrival(struct sm_module *m, uint32_t local, uint32_t len);
/* Tells the hot peers' places of such messages. Called when nothing else is to be done, or many have come: to make a
 * ring ready takes some microseconds, in which the answer to the message is better on its way. */
void sm_arrivals_tell(struct sm_module *m);
/* Messages have come by the ring since the last report. */
void sm_ring_report(struct sm_module *m, uint32_t ring);
void sm_rings_release(struct sm_module *m);            /* polls those again that need not wait for the queue any more */
void sm_ring_left(struct sm_module *m, uint32_t ring); /* the sender's BYE has been read */
void sm_ring_broken(struct sm_module *m, uint32_t ring); /* not to be polled again */
/* The ring cannot get the memory that its sender needs: it is taken back, and no ring is granted any more. */
void sm_ring_give_up(struct sm_module *m, uint32_t ring);

#endif
