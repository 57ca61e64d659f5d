/* Messages ahead of their turn, per sender and context: a struct st_reorder by rank. */
#include <stdlib.h>
#include <strata/sdk/reorder.h>
#include "comm.h"
#include "message.h"
#include "ob1.h"
#include "peer.h"

int ob1_held_insert(struct ob1_comm *c, const struct ob1_cpeer *p, uint16_t seq, struct ob1_msg *msg)
{
    struct st_reorder *old = st_rank_table_get(&c->held, (uint32_t)p->rank), *r = old;
    int rc = st_reorder_insert(&r, (uint16_t)p->recv_seq, seq, msg);

    if (r == old)
        return rc;
    if (st_rank_table_set(&c->held, (uint32_t)p->rank, r) != STRATA_OK) { /* it is the member's first */
        free(r);
        return STRATA_ERR_NOMEM;
    }
    c->n_held += !old;
    return rc;
}

struct ob1_msg *ob1_held_next(struct ob1_comm *c, struct ob1_cpeer *p)
{
    struct st_reorder *r = st_rank_table_get(&c->held, (uint32_t)p->rank);
    struct ob1_msg *msg = st_reorder_take(&r, (uint16_t)p->recv_seq);

    if (!msg)
        return NULL;
    p->recv_seq++;
    if (!r) {
        (void)st_rank_table_set(&c->held, (uint32_t)p->rank, NULL);
        c->n_held--;
    }
    return msg;
}

void ob1_held_drop(struct ob1 *pml, struct ob1_comm *c)
{
    for (int64_t r = 0; c->n_held && (r = st_rank_table_next(&c->held, (uint32_t)r)) >= 0; r++) {
        struct st_reorder *h = st_rank_table_get(&c->held, (uint32_t)r);
        for (uint32_t i = 0; i <= h->mask; i++)
            if (h->slot[i])
                ob1_msg_free(pml, h->slot[i]);
        free(h);
    }
    st_rank_table_destroy(&c->held);
    c->n_held = 0;
}
