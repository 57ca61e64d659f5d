/* Does a module keep the contract of <strata/sdk/btl.h>? Asked once, when it is opened. */
#include <strata/sdk/btl_hints.h>
#include "framework/btl/btl_select.h"

const char *st_btl_check(const struct st_btl *btl)
{
    static const struct st_btl_rdma none = {0};
    const struct st_btl_ops *o = btl->ops;
    const struct st_btl_rdma *r = btl->rdma ? btl->rdma : &none;
    if (!o)
        return "it has no operations";
    if (!o->reach || !o->connect || !o->disconnect || !o->send || !o->close)
        return "reach, connect, disconnect, send and close must be there";
    if ((btl->caps & ST_BTL_GET) && !r->get)
        return "it claims get without the operation";
    if ((btl->caps & ST_BTL_PUT) && !r->put)
        return "it claims put without the operation";
    if ((btl->caps & ST_BTL_PUT_APART) && !(btl->caps & ST_BTL_PUT))
        return "it says how it puts (ST_BTL_PUT_APART) without ST_BTL_PUT";
    if ((btl->caps & ST_BTL_NEEDS_REG) && (!r->reg || !r->dereg))
        return "it needs registration and cannot register";
    if ((btl->caps & (ST_BTL_REG_KEPT | ST_BTL_REG_CHEAP)) && !(btl->caps & ST_BTL_NEEDS_REG))
        return "it says how it registers (ST_BTL_REG_KEPT, ST_BTL_REG_CHEAP) without ST_BTL_NEEDS_REG";
    if ((btl->caps & (ST_BTL_KEEP | ST_BTL_BOTH_TOLD)) && !(btl->caps & ST_BTL_MENDS))
        return "it says how it mends (ST_BTL_KEEP, ST_BTL_BOTH_TOLD) without ST_BTL_MENDS";
    if ((btl->caps & ST_BTL_COSTLY_POLL) && !o->progress)
        return "its poll is costly, and it has no progress";
    if (btl->caps & (ST_BTL_CROWDED | ST_BTL_FULL))
        return "ST_BTL_CROWDED and ST_BTL_FULL are of endpoints, not of modules";
    if ((btl->caps & ST_BTL_ORDERED) && btl->max_overtaking != 0)
        return "it keeps order, so max_overtaking must be 0";
    if (!(btl->caps & ST_BTL_ORDERED) && (btl->max_overtaking == 0 || btl->max_overtaking > ST_BTL_OVERTAKING_MOST))
        return "it keeps no order, so max_overtaking must say how far it strays: 1 to 1023 messages";
    if (!o->arm != !o->disarm)
        return "arm and disarm come together";
    if (btl->hints && !btl->hints->keep != !btl->hints->release)
        return "keep and release come together";
    if (btl->max_send == 0)
        return "max_send is 0";
    if (btl->eager_limit > btl->max_send)
        return "eager_limit is larger than max_send";
    if (btl->pipeline_send == 0 || btl->pipeline_send > btl->max_send)
        return "pipeline_send must be between 1 and max_send";
    if (btl->facts.latency_ns == 0)
        return "facts.latency_ns is 0: paths are chosen by latency, so say about how long a short message takes";
    if (btl->facts.bandwidth_mbs == 0)
        return "facts.bandwidth_mbs is 0: it is the weight in striping, so say about how many MB/s it moves";
    if ((btl->caps & (ST_BTL_GET | ST_BTL_PUT)) && btl->rdma_pipeline == 0)
        return "rdma_pipeline must not be 0 where get or put is claimed";
    return NULL;
}
