/* Selection of the rte: the first component that finds itself at home in this process. */
#include "framework/rte/rte_select.h"

#include <stdlib.h>

#include "framework/base/context.h"
#include "framework/base/select.h"

static int rte_sane(const struct st_rte *rte)
{
    const struct st_rte_ops *o = rte ? rte->ops : NULL;
    return o && o->put && o->get && o->fence && o->abort && o->is_local && o->local_ranks && o->host_of && o->close &&
           rte->size > 0 && rte->rank >= 0 && rte->rank < rte->size && rte->job_id && rte->host;
}

/* A component that finds its launcher, but cannot join, ends the selection: with another one this rank would go on in a
 * job of its own. */
struct choice {
    int broken_rc;
    const char *broken;
    bool by_name; /* the user wants the one that was chosen */
};

static int rte_open(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_rte_component_ops *ops = c->component->ops;
    struct choice *choice = arg;
    struct st_rte *rte = NULL;
    if (choice->broken) {
        st_reject(s, c->component, "not tried, for this is a job of %s's", choice->broken);
        return STRATA_ERR_UNSUPPORTED;
    }
    int rc = ops->open(s, c->component, c->config, s->host, &rte);
    if (rc != STRATA_OK && rc != STRATA_ERR_UNSUPPORTED) {
        choice->broken = c->component->name;
        choice->broken_rc = rc;
    }
    if (rc != STRATA_OK)
        return rc;
    if (!rte_sane(rte)) {
        st_reject(s, c->component, "breaks the rte contract: an operation or a fact of the job is missing");
        if (rte && rte->ops && rte->ops->close)
            rte->ops->close(rte);
        return STRATA_ERR_UNSUPPORTED;
    }
    s->rte = rte;
    choice->by_name = c->by_name;
    return STRATA_OK;
}

/* A process that a launcher has started as one of several must not go on alone because the component that would join
 * the job is a damaged file: the others would wait for it. */
static int rte_not_lost(strata_t *s, const struct choice *choice)
{
    const char *why, *name = st_mca_unloaded(s->mca, "rte", &why);
    char where[160];

    if (s->rte->size > 1 || choice->by_name || !name || !getenv("PMIX_RANK"))
        return STRATA_OK;
    return st_fail(
        s, STRATA_ERR_NOT_FOUND,
        "%s: a launcher has started this process (PMIX_RANK is set), and rte_%s, which may be what joins its "
        "job, cannot be loaded: %s; --mca rte singleton lets it go on alone",
        st_select_where(s, where, sizeof where), name, why);
}

int st_rte_select(strata_t *s)
{
    struct choice choice = {0};
    int rc = st_select_one(s, "rte", sizeof(struct st_rte_component_ops), rte_open, &choice);
    if (rc == STRATA_OK)
        return rte_not_lost(s, &choice);
    return choice.broken ? choice.broken_rc : rc;
}
