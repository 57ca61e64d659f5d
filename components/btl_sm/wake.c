/* Sleeping and being woken.
 *
 * Sleeper: sleeping = 1; barrier; look for work; futex wait. Sender: publish; look at sleeping. One of the two must see
 * the other. A full barrier on the sender's side would be paid by every message, so the sleeper makes one happen on all
 * processors that run a Strata process: membarrier(GLOBAL_EXPEDITED), for which every module's process registers. Where
 * the kernel has none, the bound on every sleep is what is left. */
#define _GNU_SOURCE 1
#include "sm.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

void sm_wake_init(void)
{
    /* Failure needs no handling: sleeps are bounded. */
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

void sm_wake_peer(struct sm_peer *p)
{
    struct sm_header *h = p->header;

    /* Only one of several senders pays for the system call. */
    if (!atomic_exchange_explicit(&h->sleeping, 0, memory_order_acq_rel))
        return;
    atomic_fetch_add_explicit(&h->wake, 1, memory_order_release);
    (void)syscall(SYS_futex, &h->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    sm_module(p->ep.btl)->count.wakes++;
}

int sm_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct sm_module *m = sm_module(btl);
    struct sm_header *h = m->header;

    w->fd = -1;
    w->word = &h->wake;
    w->expect = atomic_load_explicit(&h->wake, memory_order_acquire);
    atomic_store_explicit(&h->sleeping, 1, memory_order_seq_cst);
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    if (sm_pending(m)) {
        sm_disarm(btl);
        return STRATA_ERR_AGAIN;
    }
    m->count.sleeps++;
    return STRATA_OK;
}

void sm_disarm(struct st_btl *btl)
{
    atomic_store_explicit(&sm_module(btl)->header->sleeping, 0, memory_order_relaxed);
}
