/* Reaching, connecting and letting go of peers. */
#include "sm.h"

#include <stdio.h>
#include <string.h>

int sm_reach(struct st_btl *btl, int rank)
{
    struct sm_module *m = sm_module(btl);
    struct sm_card card;

    if (rank == m->rte->rank || sm_local_of(m, rank) < 0 || !m->rte->ops->is_local(m->rte, rank))
        return STRATA_ERR_UNREACHABLE;
    return sm_card_fetch(m, rank, &card, NULL, 0);
}

/* The attached process at a local index; logs why when there is none to be had. */
static int peer_get(struct sm_module *m, uint32_t local, struct sm_peer **out)
{
    char why[256] = "";
    int rc;

    if (m->peers[local]) {
        *out = m->peers[local];
        return STRATA_OK;
    }
    rc = sm_attach(m, local, &m->peers[local], why, sizeof why);
    if (rc != STRATA_OK) {
        st_log(m->btl.context, ST_LOG_WARN, "btl_sm", "rank %d cannot be attached: %s", m->local_ranks[local], why);
        return rc;
    }
    *out = m->peers[local];
    return STRATA_OK;
}

struct sm_peer *sm_peer_at(struct sm_module *m, uint32_t local)
{
    struct sm_peer *p;

    if (peer_get(m, local, &p) == STRATA_OK)
        return p;
    if (m->btl.peer_failed)
        m->btl.peer_failed(m->btl.peer_failed_arg, m->local_ranks[local], STRATA_ERR_UNREACHABLE,
                           "its shared memory cannot be attached");
    return NULL;
}

int sm_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct sm_module *m = sm_module(btl);
    int64_t local = sm_local_of(m, rank);
    struct sm_peer *p;
    int rc;

    if (local < 0 || rank == m->rte->rank)
        return STRATA_ERR_UNREACHABLE;
    rc = sm_cells_ready(m);
    if (rc != STRATA_OK)
        return rc;
    rc = peer_get(m, (uint32_t)local, &p);
    if (rc != STRATA_OK)
        return rc;
    p->connected = true;
    *out = &p->ep;
    return STRATA_OK;
}

void sm_disconnect(struct st_btl_endpoint *ep)
{
    struct sm_peer *p = sm_peer(ep);

    /* The ring goes back; the mapping stays until close: the peer's cells may still be named in our queue. */
    if (p->granted != SM_NO_GRANT)
        (void)sm_grant_changed(p, 0);
    sm_copy_cancel(p);
    p->connected = false;
}

void sm_peer_violation(struct sm_module *m, uint32_t local, const char *what)
{
    struct sm_peer *p = m->peers[local];
    int rank = m->local_ranks[local];

    m->count.violations++;
    if (p && p->failed)
        return;
    st_log(m->btl.context, ST_LOG_ERROR, "btl_sm", "rank %d wrote what cannot be true (%s); it was dropped", rank,
           what);
    if (p) {
        p->failed = true;
        p->granted = SM_NO_GRANT; /* every send now takes the slow path, which says so */
    }
    if (m->btl.peer_failed)
        m->btl.peer_failed(m->btl.peer_failed_arg, rank, STRATA_ERR_PROTOCOL, what);
}
