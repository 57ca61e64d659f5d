/* Which modules are polled, and how often. A module whose poll costs a system call (ST_BTL_COSTLY_POLL) would tax every
 * message of the others: as long as nothing comes from it, it is asked at intervals of a sixteenth of the time that it
 * has been quiet. So what it brings after a long silence is late by a sixteenth of the silence at most. */
#include <stdlib.h>
#include <time.h>
#include "ob1.h"

#define BUSY_NS    20000u  /* quiet for less: asked every time */
#define LONGEST_NS 100000u /* between two polls */
#define CLOCK_MASK 15u     /* the clock is read in every 16th round only */

struct ob1_rare {
    struct st_btl *btl;
    uint64_t last_ns, next_ns; /* when something came last; not before this, or 0: at once */
    uint32_t round;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct ob1_rare *rare_of(struct ob1 *pml, const struct st_btl *btl)
{
    struct ob1_rare *r = pml->rare;

    while (r->btl != btl)
        r++;
    return r;
}

/* Stands in the list of polled modules in place of a costly module's progress. Under the lock, like every poll. */
static int poll_rarely(struct st_btl *btl)
{
    struct ob1_rare *r = rare_of(btl->am[ST_AM_PML].arg, btl);
    uint64_t now;
    int n;

    if (r->next_ns && ((++r->round & CLOCK_MASK) != 0 || now_ns() < r->next_ns))
        return 0;
    n = btl->ops->progress(btl);
    now = now_ns();
    if (n > 0 || !r->last_ns) {
        r->last_ns = now;
        r->next_ns = 0;
    } else if (now - r->last_ns > BUSY_NS) {
        uint64_t gap = (now - r->last_ns) / 16;
        r->next_ns = now + (gap < LONGEST_NS ? gap : LONGEST_NS);
    }
    return n;
}

void ob1_poll_soon(struct ob1 *pml)
{
    for (uint32_t i = 0; i < pml->n_rare; i++)
        pml->rare[i].next_ns = 0;
}

void ob1_poll_add(struct ob1 *pml, struct st_btl *btl)
{
    bool costly = (btl->caps & ST_BTL_COSTLY_POLL) != 0;

    if (!btl->ops->progress)
        return;
    for (uint32_t i = 0; i < pml->n_poll; i++)
        if (pml->poll[i].btl == btl)
            return;
    if (costly)
        pml->rare[pml->n_rare++] = (struct ob1_rare){.btl = btl};
    pml->poll[pml->n_poll++] = (struct ob1_poll){costly ? poll_rarely : btl->ops->progress, btl};
}

void ob1_poll_refresh(struct ob1 *pml)
{
    for (size_t i = 0; i < pml->head.bml->n_btls; i++)
        if (!(pml->head.bml->btls[i]->caps & ST_BTL_PASSIVE))
            ob1_poll_add(pml, pml->head.bml->btls[i]);
}

int ob1_poll_create(struct ob1 *pml)
{
    size_t n = pml->head.bml->n_btls;

    pml->poll = calloc(n + 1, sizeof(*pml->poll));
    pml->rare = calloc(n + 1, sizeof(*pml->rare));
    return pml->poll && pml->rare ? STRATA_OK : STRATA_ERR_NOMEM;
}

void ob1_poll_destroy(struct ob1 *pml)
{
    free(pml->poll);
    free(pml->rare);
}

size_t ob1_poll_bytes(const struct ob1 *pml)
{
    return pml->n_btls * (sizeof(*pml->poll) + sizeof(*pml->rare));
}
