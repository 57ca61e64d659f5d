/* Communicators: attached at their first collective, detached when they are freed. */
#include "slot.h"

#include <stdlib.h>

#include <strata/sdk/rte.h>
#include <strata/sdk/worker.h>

/* The same at all members: whether they share a machine is. */
static bool slot_is_local(const struct sm *sm, const strata_comm_t *comm)
{
    struct st_rte *rte = st_rte(sm->base.context);
    if (comm->size < 2 || comm->size > sm->config.ranks)
        return false;
    for (int i = 0; i < comm->size; i++) {
        int rank = comm->world ? comm->world[i] : i;
        if (rank != rte->rank && !rte->ops->is_local(rte, rank))
            return false;
    }
    return true;
}

static size_t slot_bytes(const struct slot *s)
{
    return sizeof(*s) + (size_t)s->n * sizeof(s->member[0]);
}

int cs_slot_attach(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out)
{
    struct sm *sm = (struct sm *)coll;
    int n = slot_is_local(sm, group->comm) ? group->comm->size : 0;
    struct slot *s = calloc(1, sizeof(*s) + (size_t)n * sizeof(s->member[0]));
    if (!s)
        return STRATA_ERR_NOMEM;
    s->base = (struct st_coll_slot){coll, group};
    s->sm = sm;
    s->n = n;
    s->me = group->comm->rank;
    s->stage = n ? SLOT_NEW : SLOT_OUT;
    s->own.fd = -1;
    st_list_init(&s->ops);
    st_list_init(&s->queue);
    st_list_init(&s->below);
    sm->bytes += slot_bytes(s);
    st_list_append(&sm->slots, &s->node);
    *out = &s->base;
    return STRATA_OK;
}

/* Others may be in the last operation: what they have mapped stays theirs. */
void cs_slot_detach(struct st_coll_slot *base)
{
    struct slot *s = (struct slot *)base;
    struct sm *sm = s->sm;
    st_worker_lock(sm->w);
    st_list_remove(&s->node);
    sm->bytes -= slot_bytes(s);
    sm->area_bytes -= s->own.bytes;
    st_worker_unlock(sm->w);
    for (int m = 0; m < s->n; m++)
        st_shared_unmap(&s->member[m].mapping);
    cs_area_drop(&s->own);
    free(s->cards);
    free(s);
}
