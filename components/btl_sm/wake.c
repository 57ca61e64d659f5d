/* Waking a process that sleeps.
 *
 * Sleeper: says that it sleeps; barrier; looks for work; waits. Sender: publishes; looks whether it sleeps. One of the
 * two sees the other. A full barrier on the sender's side would be paid by every message, so the sleeper makes one
 * happen on all processors that run a Strata process: membarrier(GLOBAL_EXPEDITED), for which every module's process
 * registers. Where the kernel has none, the bound on every sleep is what is left. */
#define _GNU_SOURCE 1
#include "wake.h"
#include "sm.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <strata/sdk/worker.h>
#include <sys/syscall.h>
#include <unistd.h>

void sm_wake_init(void)
{
    /* Failure needs no handling: sleeps are bounded. */
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

void sm_wake_peer(struct sm_peer *p)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_header *h = p->header;
    uint32_t how = atomic_exchange_explicit(&h->sleeping, SM_AWAKE, memory_order_acq_rel);

    if (how == SM_AWAKE)
        return;
    m->count.wakes++;
    if (m->btl.worker)
        st_worker_woke(m->btl.worker);
    if (how == SM_SLEEPS_ON_SOCKET) {
        sm_wake_socket_send(m, h->key);
        return;
    }
    atomic_fetch_add_explicit(&h->wake, 1, memory_order_release);
    (void)syscall(SYS_futex, &h->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
