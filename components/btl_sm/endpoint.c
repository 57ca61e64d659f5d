/* Reaching, connecting and letting go of peers. */
#include "sm.h"

#include <stdio.h>
#include <string.h>

int64_t sm_local_of(struct sm_module *m, int rank)
{
    int64_t at = sm_dir_place(m->dir, m->n_dir, (uint32_t)rank);

    if (at < 0)
        return -1;
    if (m->ranks[at] < 0)
        m->ranks[at] = rank;
    return m->ranks[at] == rank ? at : -1;
}

/* Believed is an entry that names another rank of this machine and lies where that rank belongs, so that no rank has
 * two. */
bool sm_known_slow(struct sm_module *m, uint32_t src)
{
    uint32_t rank1 = atomic_load_explicit(&m->dir[src].rank1, memory_order_relaxed);
    int rank = (int)(rank1 - 1);

    if (rank1 == 0 || rank1 > (uint32_t)m->rte->size || rank == m->rte->rank ||
        sm_dir_place(m->dir, m->n_dir, (uint32_t)rank) != (int64_t)src || !m->rte->ops->is_local(m->rte, rank))
        return false;
    m->ranks[src] = rank;
    return true;
}

int sm_reach(struct st_btl *btl, int rank)
{
    struct sm_module *m = sm_module(btl);
    struct sm_card card;

    if (rank == m->rte->rank || !m->rte->ops->is_local(m->rte, rank))
        return STRATA_ERR_UNREACHABLE;
    return sm_card_fetch(m, rank, &card, NULL, 0);
}

/* The attached process at an index of my directory; logs why when there is none to be had. */
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
        st_log(m->btl.context, ST_LOG_WARN, "btl_sm", "rank %d cannot be attached: %s", m->ranks[local], why);
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
        m->btl.peer_failed(m->btl.peer_failed_arg, m->ranks[local], STRATA_ERR_UNREACHABLE,
                           "its shared memory cannot be attached");
    return NULL;
}

int sm_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct sm_module *m = sm_module(btl);
    struct sm_peer *p;
    int64_t local;
    int rc;

    if (rank < 0 || rank == m->rte->rank)
        return STRATA_ERR_UNREACHABLE;
    local = sm_local_of(m, rank);
    if (local < 0) {
        st_log(m->btl.context, ST_LOG_ERROR, "btl_sm",
               "no room for rank %d among the %u processes that this one can know; raise btl_sm_late_peers", rank,
               m->n_dir);
        return STRATA_ERR_UNREACHABLE;
    }
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
    int rank = m->ranks[local];

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
