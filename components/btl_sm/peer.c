/* Attached processes: found, attached when first needed, reported when they fail. */
#include "peer.h"
#include "liveness.h"
#include "senders.h"
#include "sm.h"

#include <stdio.h>

struct sm_peer *sm_peer_find(const struct sm_module *m, int rank)
{
    struct sm_peer *p = m->peers;

    while (p && p->ep.rank != rank)
        p = p->next;
    return p;
}

int sm_peer_get(struct sm_module *m, int rank, struct sm_peer **out)
{
    char why[256] = "";
    struct sm_peer *p = sm_peer_find(m, rank);
    int rc = STRATA_OK;

    if (!p) {
        rc = sm_attach(m, rank, &p, why, sizeof why);
        if (rc == STRATA_OK) {
            p->next = m->peers;
            m->peers = p;
            m->n_peers++;
            m->newcomers++;
        }
    } else if (p->gone) {
        rc = STRATA_ERR_UNREACHABLE;
        snprintf(why, sizeof why, "it has ended");
    }
    if (rc != STRATA_OK) {
        st_log(m->btl.context, ST_LOG_WARN, "btl_sm", "rank %d cannot be attached: %s", rank, why);
        if (!p)
            sm_doubt(m, rank);
        return rc;
    }
    *out = p;
    return STRATA_OK;
}

struct sm_peer *sm_peer_of(struct sm_module *m, int rank)
{
    struct sm_peer *p;

    if (sm_peer_get(m, rank, &p) == STRATA_OK)
        return p;
    if (m->btl.peer_failed)
        m->btl.peer_failed(m->btl.peer_failed_arg, rank, STRATA_ERR_UNREACHABLE,
                           "its shared memory cannot be attached");
    return NULL;
}

struct sm_peer *sm_peer_at(struct sm_module *m, uint32_t src)
{
    struct sm_sender *s = &m->senders[src];

    if (!s->peer)
        s->peer = sm_peer_of(m, sm_rank_at(m, src));
    return s->peer;
}

void sm_peer_violation(struct sm_module *m, int rank, const char *what)
{
    struct sm_peer *p = sm_peer_find(m, rank);

    m->count.violations++;
    if (p && p->failed)
        return;
    st_log(m->btl.context, ST_LOG_ERROR, "btl_sm", "rank %d wrote what cannot be true (%s); it was dropped", rank,
           what);
    if (p) {
        p->failed = true;
        p->hot.word = ST_HOT_NONE; /* every send now takes the slow path, which says so */
    }
    if (m->btl.peer_failed)
        m->btl.peer_failed(m->btl.peer_failed_arg, rank, STRATA_ERR_PROTOCOL, what);
}

void sm_peer_died(struct sm_peer *p)
{
    struct sm_module *m = sm_module(p->ep.btl);
    char why[64];

    if (p->died || p->failed)
        return;
    p->died = true;
    snprintf(why, sizeof why, "its process %u has ended", p->pid);
    if (m->btl.peer_failed)
        m->btl.peer_failed(m->btl.peer_failed_arg, p->ep.rank, STRATA_ERR_PEER, why);
}
