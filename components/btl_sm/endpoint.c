/* Reaching peers, connecting and disconnecting them. */
#include "peer.h"
#include "send.h"
#include "single_copy.h"
#include "sm.h"

int sm_reach(struct st_btl *btl, int rank)
{
    struct sm_module *m = sm_module(btl);
    struct sm_card card;

    if (rank == m->rte->rank || !m->rte->ops->is_local(m->rte, rank))
        return STRATA_ERR_UNREACHABLE;
    return sm_card_fetch(m, rank, &card, NULL, 0);
}

int sm_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct sm_module *m = sm_module(btl);
    struct sm_peer *p;
    char why[256] = "";
    int rc;

    if (rank < 0 || rank == m->rte->rank)
        return STRATA_ERR_UNREACHABLE;
    rc = sm_cells_ready(m);
    if (rc != STRATA_OK)
        return rc;
    rc = sm_peer_get(m, rank, &p);
    if (rc != STRATA_OK)
        return rc;
    rc = sm_enter(p, m->par->attach_timeout_ms, why, sizeof why);
    if (rc != STRATA_OK) {
        st_log(m->btl.context, ST_LOG_ERROR, "btl_sm", "rank %d cannot be connected: %s", rank, why);
        m->collect = true;
        return rc;
    }
    p->connected = true;
    *out = &p->ep;
    return STRATA_OK;
}

void sm_disconnect(struct st_btl_endpoint *ep)
{
    struct sm_peer *p = sm_peer(ep);

    /* The mapping stays until sm_tidy finds that nothing needs it: the peer's cells may still be named in our queue. */
    sm_leave(p);
    sm_copy_cancel(p);
    p->connected = false;
    sm_module(ep->btl)->collect = true;
}
