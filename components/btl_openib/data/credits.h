/* Credits: taken from what arrives, returned with messages or by control messages; and crowds of short messages. */
#ifndef IB_CREDITS_H
#define IB_CREDITS_H

#include <strata/sdk/hint.h>
#include "peer/peer.h"
#include "queues/queue.h"

/* Credits of high priority given out while a message of low priority is in flight (reorder_limit.c). */
#define IB_MAY_PASS 128u
/* Polls until all but high priority is looked at, which includes low priority, when nothing calls for it. Of looks that
 * follow each other directly, one of IB_RARE_LOOKS includes it (progress_rest.c). */
#define IB_RARE       32u
#define IB_RARE_LOOKS 3u
/* Messages taken from one ring in one round, so that others have their turn, and polls until low priority is looked at
 * once several came in a round (ring_recv.c). */
#define IB_RING_MOST 16u
#define IB_RING_RARE 8u
/* Messages of high priority that may arrive before one of low priority that was sent before them: IB_MAY_PASS when it
 * was posted, as many again when one before it has ended, and what a receiver takes between two looks at low priority:
 * IB_POLLED from the CQ of high priority in each poll and once from the stash, IB_RING_MOST from the peer's ring in the
 * polls that IB_RING_RARE leaves and in looks that follow directly. */
#define IB_UNLOOKED   (IB_RARE + IB_RARE_LOOKS - 1)
#define IB_OVERTAKING (2 * IB_MAY_PASS + (IB_UNLOOKED + 1) * IB_POLLED + (IB_RING_RARE + IB_RARE_LOOKS) * IB_RING_MOST)
_Static_assert(IB_OVERTAKING <= ST_BTL_OVERTAKING_MOST, "see btl.h");

struct ib_credits {
    struct ib_peer *owing; /* peers to get a credit message */
    uint64_t crowded_ns;   /* last look whether crowds have ended; 0: there is none */
};

int ib_send_control(struct ib_peer *p, enum ib_control kind);
/* With len bytes at body as header. */
int ib_send_control_with(struct ib_peer *p, enum ib_control kind, const void *body, uint32_t len);
/* Slots of its ring that a peer returns; more than there are break the connection. */
void ib_take_slots(struct ib_peer *p, uint32_t n);
void ib_credits_too_many(struct ib_peer *p); /* breaks the connection of a peer that returns more than it got */
void ib_take_unusual_credits(struct ib_peer *p, const struct ib_head *h);
static inline void ib_take_credits(struct ib_peer *p, const struct ib_head *h)
{
    if (ST_UNLIKELY(!p->usual)) {
        ib_take_unusual_credits(p, h);
        return;
    }
    for (int i = 0; i < IB_PRIORITIES; i++) {
        p->q[i].credits += h->credits[i];
        if (ST_UNLIKELY(p->q[i].credits > p->q[i].most_credits))
            ib_credits_too_many(p);
    }
    if (ST_UNLIKELY(h->slots))
        ib_take_slots(p, h->slots);
}
/* owe.c */
void ib_owe(struct ib_peer *p);                                     /* it is to get a credit message soon */
void ib_owe_list(struct ib_module *m, struct ib_peer *p);           /* the same, for a peer that is not in the list */
void ib_send_credits(struct ib_module *m);                          /* to all that are owed many */
void ib_credits_start(struct ib_peer *p, const uint32_t credits[]); /* the connection is up */
void ib_credits_drop(struct ib_peer *p);                            /* nothing is begun any more */

/* ---- crowd.c: many short messages in flight, which had better go together ---- */
void ib_crowded(struct ib_qp *q); /* credits fell to notice_at: was that a burst? */
void ib_crowds_end(struct ib_module *m);
static inline void ib_not_crowded(struct ib_peer *p)
{
    p->ep.caps &= ~(uint32_t)ST_BTL_CROWDED;
    p->q[IB_HIGH].notice_at = p->q[IB_HIGH].crowded_at;
}
uint32_t ib_crowd_from_now(const struct ib_qp *q); /* credits left when coalesce_at more messages have been sent */

/* ---- reorder_limit.c ---- */
void ib_reorder_begin(struct ib_peer *p);               /* a message of low priority was posted */
void ib_reorder_credits(struct ib_peer *p, uint32_t n); /* instead of adding them, while it is on */
void ib_reorder_ended(struct ib_peer *p);               /* a work request of low priority has ended */

#endif
