/* Messages ahead of their turn, per sender and context. Sequence numbers are 16 bits and wrap: a message may be up to
 * WINDOW - 1 ahead of the one that is expected; everything else is stale and refused. The store is a ring indexed by
 * sequence number that grows to the distance seen, so that inserting and taking are one step in any order of arrival.
 */
#include <stdlib.h>
#include "comm.h"
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

int ob1_held_insert(struct ob1_comm *c, const struct ob1_cpeer *p, uint16_t seq, struct ob1_msg *msg)
{
    uint16_t distance = (uint16_t)(seq - (uint16_t)p->recv_seq);
    struct ob1_held *h = st_rank_table_get(&c->held, (uint32_t)p->rank);

    if (distance == 0 || distance >= WINDOW)
        return STRATA_ERR_PROTOCOL;
    if (!h || distance > h->mask) {
        struct ob1_held *more = ob1_held_grow(h, distance, (uint16_t)p->recv_seq);
        if (!more)
            return STRATA_ERR_NOMEM;
        if (st_rank_table_set(&c->held, (uint32_t)p->rank, more) != STRATA_OK) { /* it is the member's first */
            free(more);
            return STRATA_ERR_NOMEM;
        }
        c->n_held += !h;
        h = more;
    }
    if (h->slot[seq & h->mask])
        return STRATA_ERR_PROTOCOL;
    h->slot[seq & h->mask] = msg;
    h->n++;
    return STRATA_OK;
}

struct ob1_msg *ob1_held_next(struct ob1_comm *c, struct ob1_cpeer *p)
{
    struct ob1_held *h = st_rank_table_get(&c->held, (uint32_t)p->rank);
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
        (void)st_rank_table_set(&c->held, (uint32_t)p->rank, NULL);
        c->n_held--;
    }
    return msg;
}

void ob1_held_drop(struct ob1 *pml, struct ob1_comm *c)
{
    for (int64_t r = 0; c->n_held && (r = st_rank_table_next(&c->held, (uint32_t)r)) >= 0; r++) {
        struct ob1_held *h = st_rank_table_get(&c->held, (uint32_t)r);
        for (uint32_t i = 0; i <= h->mask; i++)
            if (h->slot[i])
                ob1_msg_free(pml, h->slot[i]);
        free(h);
    }
    st_rank_table_destroy(&c->held);
    c->n_held = 0;
}
