/* Transports whose opening costs much are left out of a job in which they would carry nothing. */
#include "framework/base/context.h"
#include "framework/btl/btl_select.h"

/* An embedder's ranks may come and go, and the nodes of mca_base_node are machines of their own. */
static bool costly_one_machine(const strata_t *s)
{
    int n = 0;

    if (s->host || s->rte->size < 2)
        return false;
    return s->rte->ops->local_ranks(s->rte, &n) && n == s->rte->size;
}

bool st_btl_may_spare(const strata_t *s, const struct st_candidate *c)
{
    const struct st_btl_component_ops *ops = c->component->ops;

    return ops->costly_exclusivity > 0 && !c->by_name && !s->mca_lent && costly_one_machine(s) &&
           !st_mca_configured(s->mca, c->component);
}

const struct st_btl *st_btl_instead_of(const strata_t *s, const struct st_candidate *c)
{
    const struct st_btl_component_ops *ops = c->component->ops;

    for (size_t i = 0; i < s->n_btls; i++)
        if (s->btls[i]->exclusivity > ops->costly_exclusivity)
            return s->btls[i];
    return NULL;
}
