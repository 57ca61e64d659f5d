/* The look before this process sleeps. */
#include "attach.h"
#include "liveness.h"
#include "peer.h"
#include "ring_inl.h"
#include "senders.h"
#include "sm.h"

bool sm_pending(struct sm_module *m)
{
    uint32_t src;

    if (m->n_held) /* what they wait for may be a dead process */
        sm_queue_unstick(m);
    for (uint32_t i = 0; i < m->n_order; i++) {
        uint64_t word;
        if (sm_ring_poll(m->order[i], &word))
            return true;
    }
    if (sm_queue_peek(&m->queue, &src) || m->ops.first || m->helps)
        return true;
    sm_socket_serve(m);
    sm_tidy(m);
    sm_look_for_ended(m);
    return false;
}
