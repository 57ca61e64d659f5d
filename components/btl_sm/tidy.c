/* Peers that have left or died: their entries are taken back, their memory is unmapped. */
#include "liveness.h"
#include "peer.h"
#include "peer_maps.h"
#include "send.h"
#include "senders.h"
#include "single_copy.h"
#include "sm.h"

#include <stdlib.h>

static void sm_peer_free(struct sm_module *m, struct sm_peer *p)
{
    for (uint32_t i = 0; i < m->n_dir; i++) {
        if (m->senders[i].peer == p)
            m->senders[i].peer = NULL;
    }
    if (p->base) {
        sm_leave(p);
        sm_unmap(p);
    }
    sm_maps_drop(p);
    m->n_peers--;
    free(p);
}

/* The process has ended and all that it sent has been read: only the endpoint stays, because upper layers hold it. */
static void sm_peer_gone(struct sm_module *m, struct sm_peer *p, bool in_order)
{
    sm_cells_recover(m, p->ep.rank);
    p->was.ring = p->hot.word != ST_HOT_NONE;
    p->was.single_copy = p->single_copy;
    p->hot.word = ST_HOT_NONE;
    p->grant = &m->no_grant;
    p->my_index = SM_DIR_NONE;
    p->tx.left = 0;
    p->single_copy = SM_COPY_OFF;
    p->no_copy_why = "it has ended";
    p->ep.caps = 0;
    p->gone = true;
    p->failed = p->failed || !in_order;
    sm_maps_drop(p);
    sm_unmap(p);
}

/* Unmaps peers that nothing needs any more: whoever has ended, and those with whom no endpoint is left. */
static void sm_peers_collect(struct sm_module *m, bool look_for_dead)
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
                sm_peer_gone(m, p, closing);
            }
            if (free_it) {
                *at = p->next;
                sm_peer_free(m, p);
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
        sm_peers_collect(m, look_for_dead);
    }
}

void sm_peers_close(struct sm_module *m)
{
    struct sm_peer *p;

    while ((p = m->peers) != NULL) {
        m->peers = p->next;
        sm_peer_free(m, p);
    }
    sm_doubts_free(m);
}
