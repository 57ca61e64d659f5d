/* Selection of the pml. */
#include "framework/pml/pml_select.h"

#include "framework/base/context.h"
#include "framework/base/select.h"

static bool pml_sane(const struct st_pml_ops *o)
{
    return o->comm_size >= sizeof(struct strata_comm) && o->request_size >= sizeof(struct strata_request) &&
           o->request_align > 0 && o->comm_add && o->comm_del && o->send && o->recv && o->isend && o->irecv &&
           o->send_init && o->recv_init && o->start && o->cancel && o->request_free && o->iprobe && o->imrecv &&
           o->close;
}

static int pml_open(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_pml_component_ops *ops = c->component->ops;
    struct st_pml **out = arg, *pml = NULL;
    int rc = ops->open(s, c->component, c->config, s->worker, &pml);
    if (rc != STRATA_OK)
        return rc;
    if (!pml_sane(pml->ops)) {
        st_reject(s, c->component, "breaks the pml contract: an operation is missing or a size too small");
        if (pml->ops->close)
            pml->ops->close(pml);
        return STRATA_ERR_UNSUPPORTED;
    }
    *out = pml;
    return STRATA_OK;
}

int st_pml_select(strata_t *s)
{
    return st_select_one(s, "pml", sizeof(struct st_pml_component_ops), pml_open, &s->pml);
}
