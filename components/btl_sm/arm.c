/* Going to sleep: wake.c says how nothing is missed. */
#define _GNU_SOURCE 1
#include "sm.h"
#include "wake.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

int sm_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct sm_module *m = sm_module(btl);
    struct sm_header *h = m->header;

    if (w->by_fd)
        w->fd = sm_wake_socket(m);
    if (w->fd < 0) {
        w->word = &h->wake;
        w->expect = atomic_load_explicit(&h->wake, memory_order_acquire);
    } else if (m->woken) {
        sm_wake_socket_empty(m); /* one that comes later ends this sleep for nothing, once */
        m->woken = false;
    }
    atomic_store_explicit(&h->sleeping, w->fd < 0 ? SM_SLEEPS_ON_WORD : SM_SLEEPS_ON_SOCKET, memory_order_seq_cst);
    if (m->wanting)
        sm_room_ask(m);
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    if (sm_pending(m) || (m->wanting && sm_room_found(m))) {
        sm_disarm(btl);
        return STRATA_ERR_AGAIN;
    }
    m->count.sleeps++;
    return STRATA_OK;
}

void sm_disarm(struct st_btl *btl)
{
    struct sm_module *m = sm_module(btl);

    if (atomic_exchange_explicit(&m->header->sleeping, SM_AWAKE, memory_order_relaxed) == SM_AWAKE)
        m->woken = true;
}
