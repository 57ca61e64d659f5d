/* Room for the entries of send queues. Programs ask for long queues and use them seldom: of a queue pair the room that
 * it has needed at once is held. */
#include "hca.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 4 };

static struct hca_sq *room_of(const struct hca_qp_own *qp, uint32_t n, struct hca_sq *older)
{
    struct hca_sq *sq = calloc(1, sizeof *sq + (size_t)n * qp->sq_stride);

    if (sq) {
        sq->n = n;
        sq->older = older;
    }
    return sq;
}

int hca_sq_make(struct hca_qp_own *qp)
{
    struct hca_sq *sq = room_of(qp, qp->sq_n < FIRST ? qp->sq_n : FIRST, NULL);

    atomic_init(&qp->sq, sq);
    return sq ? 0 : ENOMEM;
}

/* Who polls reads entries without the lock: those that are over are in the new room, too, and the old one stays. */
int hca_sq_grow(struct hca_qp_own *qp)
{
    struct hca_sq *old = atomic_load_explicit(&qp->sq, memory_order_relaxed), *sq = room_of(qp, 2 * old->n, old);

    if (!sq)
        return ENOMEM;
    for (uint32_t i = qp->sq_free; i != qp->sq_tail; i++)
        memcpy(sq->entries + (size_t)(i & (sq->n - 1)) * qp->sq_stride, hca_swqe_at(qp, i), qp->sq_stride);
    /* Release: what was copied is seen with the pointer. */
    atomic_store_explicit(&qp->sq, sq, memory_order_release);
    return 0;
}

void hca_sq_free(struct hca_qp_own *qp)
{
    struct hca_sq *sq = atomic_load_explicit(&qp->sq, memory_order_relaxed);

    while (sq) {
        struct hca_sq *older = sq->older;
        free(sq);
        sq = older;
    }
}
