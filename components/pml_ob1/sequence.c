/* Messages ahead of their turn, per sender and context. Sequence numbers are 16 bits and wrap: a message may be up to
 * WINDOW - 1 ahead of the one that is expected; everything else is stale and refused. The store is a ring indexed by
 * sequence number that grows to the distance seen, so that inserting and taking are one step in any order of arrival.
 */
#include <stdlib.h>
#include "message.h"
#include "ob1.h"
#include "peer.h"

#define WINDOW 32768u
#define FIRST  8u

static struct ob1_held *ob1_held_grow(struct ob1_held *old, uint32_t distance, uint16_t expected)
{
    uint32_t size = old ? (old->mask + 1) * 2 : FIRST;
    struct ob1_held *h;

    while (size <= distance)
        size *= 2;
    h = calloc(1, sizeof(*h) + size * sizeof(struct ob1_msg *));
    if (!h)
        return NULL;
    h->mask = size - 1;
    if (old) {
        h->n = old->n;
        for (uint32_t i = 0; i <= old->mask; i++) {
            uint32_t seq = expected + i;
            h->slot[seq & h->mask] = old->slot[seq & old->mask];
        }
        free(old);
    }
    return h;
}

int ob1_held_insert(struct ob1_cpeer *p, uint16_t seq, struct ob1_msg *msg)
{
    uint16_t distance = (uint16_t)(seq - (uint16_t)p->recv_seq);

    if (distance == 0 || distance >= WINDOW)
        return STRATA_ERR_PROTOCOL;
    if (!p->held || distance > p->held->mask) {
        struct ob1_held *h = ob1_held_grow(p->held, distance, (uint16_t)p->recv_seq);
        if (!h)
            return STRATA_ERR_NOMEM;
        p->held = h;
    }
    if (p->held->slot[seq & p->held->mask])
        return STRATA_ERR_PROTOCOL;
    p->held->slot[seq & p->held->mask] = msg;
    p->held->n++;
    return STRATA_OK;
}

struct ob1_msg *ob1_held_next(struct ob1_cpeer *p)
{
    struct ob1_held *h = p->held;
    struct ob1_msg *msg;

    if (!h)
        return NULL;
    msg = h->slot[p->recv_seq & h->mask];
    if (!msg)
        return NULL;
    h->slot[p->recv_seq & h->mask] = NULL;
    p->recv_seq++;
    if (--h->n == 0) {
        free(h);
        p->held = NULL;
    }
    return msg;
}

void ob1_held_drop(struct ob1 *pml, struct ob1_cpeer *p)
{
    if (!p->held)
        return;
    for (uint32_t i = 0; i <= p->held->mask; i++)
        if (p->held->slot[i])
            ob1_msg_free(pml, p->held->slot[i]);
    free(p->held);
    p->held = NULL;
}
