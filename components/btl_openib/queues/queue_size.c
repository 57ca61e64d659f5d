/* Lengths of completion queues and shared receive queues, as parameters, device and number of peers have them. */
#include "device/device.h"
#include "queues/queue.h"

#define LEAST_CQE  256u
#define MOST_FIXED (16u << 10) /* entries of a CQ that cannot be resized: 1 MiB of 64 bytes each */

uint32_t ib_log2_up(uint32_t n)
{
    uint32_t k = 0;

    while ((1ull << k) < n)
        k++;
    return k;
}

uint32_t ib_doubled(uint32_t now, uint32_t want, uint32_t most)
{
    uint32_t n = now;

    while (n < want && n < most)
        n = n <= most / 2 ? 2 * n : most;
    return n;
}

uint32_t ib_cq_most(const struct ib_queue *q)
{
    return q->fixed ? q->cqe : (uint32_t)q->dev->attr.max_cqe;
}

/* Receives take half of the CQ at most. */
uint32_t ib_srq_most(const struct ib_queue *q)
{
    uint32_t most = ib_cq_most(q) / 2;

    return most < q->spec->count ? most : q->spec->count;
}

/* Paper, section 5.2.2. Fragments of low priority are large, and few are in flight at a time. */
uint32_t ib_srq_first(const struct ib_queue *q, uint32_t n_peers)
{
    double x = (double)ib_log2_up(n_peers ? n_peers : 1) * q->dev->par->srq_k + (double)q->dev->par->srq_b;
    uint32_t n = x < 1e6 ? (uint32_t)x : 1000000u;

    if (q->priority == IB_LOW)
        n = n / 4 > 4 ? n / 4 : 4;
    return n < ib_srq_most(q) ? n : ib_srq_most(q);
}

/* Peers connected at a time, at most. */
static uint64_t queue_peers(const struct ib_queue *q)
{
    uint64_t n = q->ranks ? q->ranks - 1 : MOST_FIXED;
    uint64_t most = ib_with_accepted((uint64_t)q->dev->par->max_connected_peers);

    return most && most < n ? most : n;
}

uint32_t ib_srq_for_all(const struct ib_queue *q)
{
    uint64_t n = queue_peers(q), fill = n * (q->spec->credits + 2);
    uint32_t first = ib_srq_first(q, n < MOST_FIXED ? (uint32_t)n : MOST_FIXED);

    if (fill > q->spec->count)
        fill = q->spec->count;
    return fill > first ? (uint32_t)fill : first;
}

/* Work requests of a peer's queue pair. */
static uint32_t queue_entries_of_peer(const struct ib_queue *q)
{
    return (uint32_t)q->dev->par->send_depth[q->priority] + ib_own_receives(q->spec);
}

uint32_t ib_cqs_peers(const struct ib_queue q[])
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        uint32_t most = ib_cq_most(&q[i]), each = queue_entries_of_peer(&q[i]), n = most / each;
        while (n > 0 && q[i].spec->shared && n * each + ib_srq_first(&q[i], n) > most)
            n--;
        least = n < least ? n : least;
    }
    return least;
}

uint32_t ib_cq_for_all(const struct ib_queue *q)
{
    uint64_t shared = q->spec->shared ? ib_srq_for_all(q) : 0, sum = queue_peers(q) * queue_entries_of_peer(q) + shared;

    sum = sum > 2 * shared ? sum : 2 * shared;
    sum = sum > LEAST_CQE ? sum : LEAST_CQE;
    return (uint32_t)(sum < MOST_FIXED ? sum : MOST_FIXED);
}
