/* Selection of the bml. */
#include "framework/bml/bml_select.h"

#include "framework/base/context.h"
#include "framework/base/select.h"

static int bml_open(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_bml_component_ops *ops = c->component->ops;
    struct st_bml **out = arg, *bml = NULL;
    int rc = ops->open(s, c->component, c->config, s->btls, s->n_btls, &bml);
    if (rc != STRATA_OK)
        return rc;
    const struct st_bml_ops *o = bml->ops;
    if (!o->peer || !o->lookup || !o->next || !o->path_failed || !o->path_retry || !o->path_works || !o->close) {
        st_reject(s, c->component, "breaks the bml contract: an operation is missing");
        if (o->close)
            o->close(bml);
        return STRATA_ERR_UNSUPPORTED;
    }
    *out = bml;
    return STRATA_OK;
}

int st_bml_select(strata_t *s)
{
    return st_select_one(s, "bml", sizeof(struct st_bml_component_ops), bml_open, &s->bml);
}
