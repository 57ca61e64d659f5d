/* Polling: what a module looks at next, and completions that were found when they could not be handled. */
#ifndef IB_PROGRESS_H
#define IB_PROGRESS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <strata/sdk/btl.h>
#include "queues/queue.h"

struct ib_module;

struct ib_poll {
    bool hot;             /* there are queue pairs, and nothing is stashed */
    bool attend;          /* ib_attend was called */
    bool stashed;         /* `stash` is not empty */
    uint32_t until;       /* polls until more than the CQ of high priority is looked at */
    struct ib_qp *last;   /* queue pair of the last message */
    uint32_t last_number; /* of `last`; with eager RDMA 0: all completions are looked at one by one */
    uint32_t low_soon;    /* polls in which low priority is looked at each time */
    uint32_t looks;       /* calls of ib_progress_rest */
    uint32_t rare;        /* of these, with nothing in particular to do */
    struct st_frag frag;  /* being delivered */
    struct {
        struct ibv_wc wc[IB_POLLED];
        int n, at;
    } stash[IB_PRIORITIES];
};

/* Makes the next poll, or the rest of the present one, look at more than completions of high priority. */
static inline void ib_attend(struct ib_poll *p)
{
    p->attend = true;
    p->until = 1;
}
/* Polls in which low priority is looked at each time after something was sent or has come there. In between it is
 * looked at now and then. */
#define IB_LOW_SOON 256u
static inline void ib_expect_low(struct ib_poll *p)
{
    p->low_soon = IB_LOW_SOON;
    ib_attend(p);
}

/* ---- progress.c: messages and their completions ---- */
int ib_progress(struct st_btl *btl);
int ib_poll_high(struct ib_module *m);
int ib_poll_low(struct ib_module *m);
int ib_unstash(struct ib_module *m);
/* ---- eager_rdma/ring_recv.c ---- */
int ib_progress_eager(struct st_btl *btl); /* with eager RDMA: the rings first */
/* ---- progress_rest.c ---- */
int ib_progress_rest(struct ib_module *m, int n); /* all else; n: events so far */
int ib_arm(struct st_btl *btl, struct st_btl_wait *w);
void ib_disarm(struct st_btl *btl);
/* ---- async.c ---- */
void ib_async_poll(struct ib_module *m); /* events of the device */

#endif
