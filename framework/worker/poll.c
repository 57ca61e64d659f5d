/* Which modules are polled, and how often. A module whose poll costs a system call (ST_BTL_COSTLY_POLL) would tax every
 * message of the others: as long as nothing comes from it, it is asked at intervals of a sixteenth of the time that it
 * has been quiet. So what it brings after a long silence is late by a sixteenth of the silence at most. One that is
 * alone is asked always. */
#include <stdlib.h>

#include <strata/sdk/clock.h>

#include "framework/base/context.h"
#include "framework/worker/worker.h"

#define BUSY_NS    20000u  /* quiet for less: asked every time */
#define LONGEST_NS 100000u /* between two polls */
#define CLOCK_MASK 15u     /* the clock is read in every 16th round only */

static struct worker_rare *poll_rare_of(struct worker *w, const struct st_btl *btl)
{
    struct worker_rare *r = w->rare;
    while (r->btl != btl)
        r++;
    return r;
}

/* Stands in the list of polled modules in place of a costly module's progress. Under the lock, like every poll. */
static int poll_rarely(struct st_btl *btl)
{
    struct worker *w = worker_of(btl->worker);
    if (w->n_poll == 1) /* there are no others to be taxed */
        return btl->ops->progress(btl);
    struct worker_rare *r = poll_rare_of(w, btl);
    if (r->next_ns && ((++r->round & CLOCK_MASK) != 0 || st_now_ns() < r->next_ns))
        return 0;
    int n = btl->ops->progress(btl);
    uint64_t now = st_now_ns();
    if (n > 0 || !r->last_ns) {
        r->last_ns = now;
        r->next_ns = 0;
    } else if (now - r->last_ns > BUSY_NS) {
        uint64_t gap = (now - r->last_ns) / 16;
        r->next_ns = now + (gap < LONGEST_NS ? gap : LONGEST_NS);
    }
    return n;
}

void st_worker_poll_soon(struct st_worker *head)
{
    struct worker *w = worker_of(head);
    for (uint32_t i = 0; i < w->n_rare; i++)
        w->rare[i].next_ns = 0;
}

void st_worker_poll_add(struct st_worker *head, struct st_btl *btl)
{
    struct worker *w = worker_of(head);
    bool costly = (btl->caps & ST_BTL_COSTLY_POLL) != 0;
    if (!btl->ops->progress)
        return;
    for (uint32_t i = 0; i < w->n_poll; i++)
        if (w->poll[i].btl == btl)
            return;
    if (costly)
        w->rare[w->n_rare++] = (struct worker_rare){.btl = btl};
    w->poll[w->n_poll++] = (struct st_worker_poll){costly ? poll_rarely : btl->ops->progress, btl};
    st_worker_wake(head); /* who sleeps does not wait for this one */
}

int worker_poll_create(struct worker *w)
{
    size_t n = w->head.bml->n_btls;
    w->poll = calloc(n + 1, sizeof(*w->poll));
    w->rare = calloc(n + 1, sizeof(*w->rare));
    w->head.poll = w->poll;
    if (!w->poll || !w->rare)
        return STRATA_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct st_btl *btl = w->head.bml->btls[i];
        btl->worker = &w->head;
        if (!(btl->caps & ST_BTL_PASSIVE))
            st_worker_poll_add(&w->head, btl);
    }
    return STRATA_OK;
}

void worker_poll_destroy(struct worker *w)
{
    free(w->poll);
    free(w->rare);
}
