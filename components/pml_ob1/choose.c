/* See choose.h. */
#include "choose.h"

static enum ob1_protocol ob1_choose_rendezvous(const struct ob1_choice *c)
{
    if (!c->contiguous || !(c->caps & (ST_BTL_GET | ST_BTL_PUT)))
        return OB1_P_RNDV;
    if (!(c->caps & ST_BTL_NEEDS_REG))
        return OB1_P_RNDV_EXPOSED;
    /* Where memory must be registered each time a put goes piece by piece, registration and transfer overlapping. The
     * whole message is registered up front, which saves a message, where registrations are kept or cheap, when the path
     * can do nothing but get, or when that is what the user wants. */
    if (!(c->caps & ST_BTL_PUT))
        return OB1_P_RNDV_KEY;
    if ((c->caps & ST_BTL_GET) && (c->wanted == OB1_RNDV_GET || c->wanted == OB1_RNDV_SPLIT ||
                                   (c->wanted == OB1_RNDV_AUTO && (c->caps & (ST_BTL_REG_KEPT | ST_BTL_REG_CHEAP)))))
        return OB1_P_RNDV_KEY;
    return OB1_P_RNDV_EXPOSED;
}

static enum ob1_protocol ob1_choose_start(const struct ob1_choice *c)
{
    if (c->announce)
        return ob1_choose_rendezvous(c);
    if (c->length <= c->eager_limit)
        return c->mode == STRATA_SYNCHRONOUS ? OB1_P_EAGER_SYNC : OB1_P_EAGER;
    if (c->length <= c->stream_limit && c->mode != STRATA_SYNCHRONOUS)
        return OB1_P_STREAM;
    return ob1_choose_rendezvous(c);
}

static enum ob1_protocol ob1_choose_fetch(const struct ob1_choice *c)
{
    bool direct = c->contiguous && c->peer_exposed;
    bool get = direct && (c->caps & ST_BTL_GET) && (!(c->caps & ST_BTL_NEEDS_REG) || c->peer_key);
    bool put = direct && (c->caps & ST_BTL_PUT);

    if (c->length == 0)
        return OB1_P_NOTHING;
    switch (c->wanted) {
    case OB1_RNDV_GET:
        if (get)
            return OB1_P_GET;
        break;
    case OB1_RNDV_PUT:
        if (put)
            return OB1_P_PUT;
        break;
    case OB1_RNDV_SPLIT:
        if (get && put && c->length > 1)
            return OB1_P_SPLIT;
        break;
    case OB1_RNDV_PIPELINE:
        return OB1_P_PIPELINE;
    case OB1_RNDV_AUTO:
        break;
    }
    if (c->length < c->rdma_min)
        return OB1_P_PIPELINE;
    if (get && put && c->split_min && c->length >= c->split_min && c->length > 1)
        return OB1_P_SPLIT;
    if (get)
        return OB1_P_GET;
    return put ? OB1_P_PUT : OB1_P_PIPELINE;
}

enum ob1_protocol ob1_choose(const struct ob1_choice *c)
{
    return c->matched ? ob1_choose_fetch(c) : ob1_choose_start(c);
}

const char *ob1_protocol_name(enum ob1_protocol p)
{
    static const char *const names[OB1_P_COUNT] = {
        [OB1_P_EAGER] = "eager",
        [OB1_P_EAGER_SYNC] = "eager, answered",
        [OB1_P_STREAM] = "stream",
        [OB1_P_RNDV] = "rendezvous",
        [OB1_P_RNDV_EXPOSED] = "rendezvous, address",
        [OB1_P_RNDV_KEY] = "rendezvous, key",
        [OB1_P_NOTHING] = "nothing",
        [OB1_P_GET] = "get",
        [OB1_P_PUT] = "put",
        [OB1_P_SPLIT] = "get and put",
        [OB1_P_PIPELINE] = "pipeline",
    };
    return p < OB1_P_COUNT ? names[p] : "?";
}
