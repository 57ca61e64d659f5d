/* Waiting for deliveries that are under way. Each counts itself among the users of its queue pair (hca_take_hold()). */
#include "hca.h"

#include <sched.h>
#include <time.h>

/* The only process that copies by a connected queue pair has ended; others that find it only look. */
static bool peer_has_ended(uint32_t type, uint32_t dest_qpn)
{
    const uint32_t index = hca_qpn_process(dest_qpn);
    struct hca_peer *p;

    if (type == IBV_QPT_UD || index == 0 || index == hca.index)
        return false;
    p = hca_peer_get(index);
    return !p || hca_peer_dead(p);
}

/* Waits until a queue pair that is connected to dest_qpn has no users; `begin`: when the waiting began, ns. A peer that
 * died in the middle never takes its count back: after two seconds, which are the clock's because a pause lasts long on
 * a busy machine, nobody alive is still copying. A process that has met that once is not as patient again, or a broken
 * peer would hold up each queue pair as long. Nor are there ever 65536 users: such a count a broken peer wrote. */
static void await(const struct hca_qp *q, uint32_t type, uint32_t dest_qpn, uint64_t begin)
{
    const struct timespec pause = {0, 50000};
    const uint64_t most = atomic_load(&hca.counts_stick) ? 50000000u : 2000000000u;
    uint32_t users;

    for (int i = 0; (users = atomic_load(&q->users)) > 0 && users < 1u << 16; i++) {
        if (i > 4 && peer_has_ended(type, dest_qpn))
            return;
        if (hca_now_ns() - begin > most) {
            atomic_store(&hca.counts_stick, true);
            return;
        }
        if (i < 100)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

void hca_qp_quiesce(struct hca_qp_own *qp)
{
    await(qp->shared, qp->type, qp->attr.dest_qp_num, hca_now_ns());
    atomic_store(&qp->shared->users, 0);
}

/* A queue pair that is made or destroyed meanwhile has no users that could have seen what was there before. Datagrams
 * write to no region. */
void hca_pd_quiesce(uint32_t pd)
{
    const uint64_t begin = hca_now_ns();

    for (uint32_t i = 0; i < atomic_load(&hca.top_qp); i++) {
        const struct hca_qp *q = hca_qp_at(hca.segment, i);
        if (atomic_load(&q->generation) != 0 && q->type != IBV_QPT_UD && q->pd == pd && atomic_load(&q->users) > 0)
            await(q, q->type, q->dest_qpn, begin);
    }
}
