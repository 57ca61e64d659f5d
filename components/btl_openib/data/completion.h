/* Ends of work requests that were posted to send. */
#ifndef IB_COMPLETION_H
#define IB_COMPLETION_H

#include "module.h"

/* The end of one that is not IB_SENT_NOTHING. */
void ib_sent_end(struct ib_qp *q, struct ib_sent *s, int rc);
/* Ends all that was posted and has not ended, with rc for operations. */
void ib_sent_drop(struct ib_qp *q, int rc);
/* Polls completions of sends and credit messages where nothing else may be handled; the rest is stashed. */
void ib_reclaim(struct ib_module *m);
/* The same for a queue pair of p without room or credits, or none yet: whether it has them now. */
__attribute__((noinline)) bool ib_reclaim_room(const struct ib_peer *p, const struct ib_qp *q);

/* All work requests up to the next signalled one. */
static inline void ib_sent_next(struct ib_qp *q)
{
    struct ib_sent s;

    if (ST_UNLIKELY(q->ended == q->signals))
        return;
    s = q->sent[q->ended++ & q->mask];
    q->done = s.up_to; /* first: done() may send */
    if (s.kind != IB_SENT_NOTHING)
        ib_sent_end(q, &s, STRATA_OK);
}

/* Puts a consumed buffer with those to be posted again. */
static inline __attribute__((always_inline)) void ib_recycle(struct ib_queue *queue, struct ib_buffer *b)
{
    b->wr.next = queue->again;
    queue->again = &b->wr;
    if (ST_UNLIKELY(++queue->n_again >= queue->batch))
        ib_rq_repost(queue, b);
}

#endif
