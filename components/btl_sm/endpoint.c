/* Reaching, connecting and letting go of peers. */
#include "sm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sm_reach(struct st_btl *btl, int rank)
{
    struct sm_module *m = sm_module(btl);
    struct sm_card card;

    if (rank == m->rte->rank || !m->rte->ops->is_local(m->rte, rank))
        return STRATA_ERR_UNREACHABLE;
    return sm_card_fetch(m, rank, &card, NULL, 0);
}

struct sm_peer *sm_peer_find(const struct sm_module *m, int rank)
{
    struct sm_peer *p = m->peers;

    while (p && p->ep.rank != rank)
        p = p->next;
    return p;
}

/* The attached process of a rank; logs why when there is none to be had. */
static int peer_get(struct sm_module *m, int rank, struct sm_peer **out)
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

    if (peer_get(m, rank, &p) == STRATA_OK)
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
    rc = peer_get(m, rank, &p);
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
        p->granted = SM_NO_GRANT; /* every send now takes the slow path, which says so */
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

/* ---- those who have gone ---- */

static void peer_free(struct sm_module *m, struct sm_peer *p)
{
    for (uint32_t i = 0; i < m->n_dir; i++) {
        if (m->senders[i].peer == p)
            m->senders[i].peer = NULL;
    }
    if (p->base) {
        sm_leave(p);
        sm_unmap(p);
    }
    m->n_peers--;
    free(p);
}

/* The process has ended and all that it sent has been read: only the endpoint stays, because upper layers hold it. */
static void gone(struct sm_module *m, struct sm_peer *p, bool in_order)
{
    sm_cells_recover(m, p->ep.rank);
    p->granted = SM_NO_GRANT;
    p->grant = &m->no_grant;
    p->my_index = SM_DIR_NONE;
    p->tx.left = 0;
    p->single_copy = SM_COPY_OFF;
    p->no_copy_why = "it has ended";
    p->ep.caps = 0;
    p->gone = true;
    p->failed = p->failed || !in_order;
    sm_unmap(p);
}

/* Unmaps peers that nothing needs any more: whoever has ended, and those with whom no endpoint is left. */
static void collect(struct sm_module *m, bool look_for_dead)
{
    struct sm_peer **at = &m->peers, *p;

    while ((p = *at) != NULL) {
        bool dead = look_for_dead && !sm_peer_alive(p);
        /* In this order: who ends in order sets it before it dies. */
        bool closing = p->base && atomic_load_explicit(&p->header->closing, memory_order_acquire);
        bool ended = closing || p->gone || dead;
        bool free_it = !p->connected && (ended || !sm_cells_out(m, p->ep.rank));

        if ((ended || free_it) && !sm_copy_busy(m, p) && (p->gone || !sm_named(m, p->ep.rank))) {
            if (!p->gone && ended) {
                if (!closing)
                    sm_peer_died(p);
                gone(m, p, closing);
            }
            if (free_it) {
                *at = p->next;
                peer_free(m, p);
                continue;
            }
        }
        at = &p->next;
    }
}

void sm_tidy(struct sm_module *m)
{
    /* Asking the kernel for every peer is worth it when about as many have come since. */
    bool look_for_dead = m->newcomers > 16 + m->n_peers;

    if (look_for_dead)
        m->newcomers = 0;
    if (sm_dir_sweep(m, look_for_dead) || look_for_dead || m->collect) {
        m->collect = false;
        collect(m, look_for_dead);
    }
}

void sm_peers_close(struct sm_module *m)
{
    struct sm_peer *p;

    while ((p = m->peers) != NULL) {
        m->peers = p->next;
        peer_free(m, p);
    }
    sm_doubts_free(m);
}
