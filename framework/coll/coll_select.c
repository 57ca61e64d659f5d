/* Selection of the coll component: the first that opens. */
#include "framework/coll/coll_select.h"

#include <stdlib.h>

#include "framework/base/context.h"
#include "framework/base/select.h"
#include "framework/pml/comm.h"

static int coll_open(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_coll_component_ops *ops = c->component->ops;
    struct st_coll *coll = NULL;
    int rc = ops->open(s, c->component, c->config, &coll);
    (void)arg;
    if (rc == STRATA_OK)
        s->coll = coll;
    return rc;
}

int st_coll_select(strata_t *s)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    int rc = st_mca_candidates(s->mca, "coll", sizeof(struct st_coll_component_ops), &c, &n);
    free(c);
    if (rc != STRATA_OK || n == 0)
        return rc;
    return st_select_one(s, "coll", sizeof(struct st_coll_component_ops), coll_open, NULL);
}

void st_coll_close(strata_t *s)
{
    if (s->coll)
        s->coll->ops->close(s->coll);
    s->coll = NULL;
}

void st_coll_detach(strata_comm_t *comm)
{
    struct st_coll_slot *slot = atomic_load_explicit(&st_comm_tail(comm)->coll, memory_order_acquire);
    if (slot)
        slot->coll->ops->detach(slot);
}
