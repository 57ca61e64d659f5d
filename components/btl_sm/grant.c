/* The sender's side of a ring that changes hands (polling.c): taking a grant, and ending a ring by a BYE. */
#include "peer.h"
#include "ring_inl.h"
#include "send.h"
#include "sm.h"
#include "wake.h"

int sm_grant_changed(struct sm_peer *p, uint32_t g)
{
    struct sm_layout at;
    uint32_t i = st_hot_word_place(g);

    if (p->hot.word != ST_HOT_NONE) {
        struct sm_desc *d = sm_ring_claim(&p->tx);
        if (!d)
            return sm_room_wanted(p, SM_WANTS_RING);
        sm_ring_publish(&p->tx, d, sm_word(SM_WORD_BYE, 0, 0));
        p->hot.left = p->hot.word;
        p->hot.word = ST_HOT_NONE;
        if (sm_asleep(p))
            sm_wake_peer(p);
        g = 0; /* a new grant, if there is one, is for after the owner has read the BYE */
    }
    if (st_hot_turn(&p->hot, g) == ST_HOT_STAY)
        return STRATA_OK;
    if (i >= p->geometry.n_rings) {
        sm_peer_violation(sm_module(p->ep.btl), p->ep.rank, "a ring that does not exist");
        return STRATA_ERR_PEER;
    }
    sm_layout_make(&p->geometry, &at);
    sm_segment_enter(sm_ring_base(p->base, &at, i), sm_ring_data_offset(&p->geometry));
    sm_ring_tx_init(&p->tx, sm_ring_base(p->base, &at, i), &p->geometry);
    p->hot.word = g;
    return STRATA_OK;
}

int sm_grant_look(struct sm_peer *p, uint32_t g)
{
    if (p->failed)
        return STRATA_ERR_PEER;
    return st_hot_turn(&p->hot, g) == ST_HOT_STAY ? STRATA_OK : sm_grant_changed(p, g);
}
