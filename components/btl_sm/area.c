/* The data area of a ring grows: asked for by the sender, offered by the owner, taken by the sender. */
#include "area.h"
#include "peer.h"
#include "polling.h"
#include "ring_inl.h"
#include "sm.h"
#include "wake.h"

#include <errno.h>
#include <string.h>

/* Messages that an area holds at least, so that a sender and a consumer in turn seldom look at the counters. */
#define AREA_MESSAGES 8u

uint32_t sm_area_step(const struct sm_geometry *g, uint32_t len)
{
    uint32_t step = len != 0, last = sm_area_last(g);

    while (step && step < last && sm_area_bytes(g, step) / AREA_MESSAGES < len)
        step++;
    return step;
}

static bool area_say(struct sm_peer *p, enum sm_area_word kind, uint32_t step)
{
    struct sm_desc *d = sm_ring_claim(&p->tx);

    if (!d)
        return false;
    sm_ring_publish(&p->tx, d, sm_word((uint32_t)kind << 16 | SM_WORD_AREA, 0, step));
    if (ST_UNLIKELY(sm_asleep(p))) /* the message that wants it may have to wait, and would not wake the owner */
        sm_wake_peer(p);
    return true;
}

/* Begins to use what is offered. */
static enum sm_area_answer area_take(struct sm_peer *p)
{
    struct sm_ring_tx *tx = &p->tx;
    uint32_t offered = atomic_load_explicit(&tx->ctl->offered, memory_order_acquire); /* as in sm_area_offered */
    uint32_t used = sm_area_bytes(&p->geometry, tx->step);

    if (offered > sm_area_last(&p->geometry)) {
        sm_peer_violation(sm_module(p->ep.btl), p->ep.rank, "a data area that does not exist");
        return SM_AREA_LATER;
    }
    if (offered <= tx->step || !area_say(p, SM_AREA_TURN, offered))
        return SM_AREA_LATER;
    sm_segment_enter(tx->data + used, sm_area_bytes(&p->geometry, offered) - used);
    sm_ring_tx_widen(tx, &p->geometry, offered);
    return SM_AREA_LARGER;
}

enum sm_area_answer sm_area_more(struct sm_peer *p, uint32_t len)
{
    struct sm_ring_tx *tx = &p->tx;
    bool need = len > tx->most;
    uint32_t last = sm_area_last(&p->geometry), step = tx->step + 1u, ask;

    if (sm_area_offered(tx))
        return area_take(p);
    if (need && sm_area_step(&p->geometry, len) > step)
        step = sm_area_step(&p->geometry, len);
    ask = 2 * step + need; /* a need after a wish for the same: that may have been refused */
    if (step > last || ask <= tx->asked || !area_say(p, need ? SM_AREA_NEED : SM_AREA_WISH, step))
        return SM_AREA_LATER;
    tx->asked = (uint8_t)ask;
    return need ? SM_AREA_QUEUE : SM_AREA_LATER;
}

int sm_area_offer(struct sm_module *m, struct sm_ring_rx *rx, uint32_t step)
{
    const struct sm_geometry *g = &m->seg.geometry;
    uint32_t used = sm_area_bytes(g, rx->offered), bytes = sm_area_bytes(g, step);
    int rc;

    if (step <= rx->offered)
        return STRATA_OK;
    rc = sm_segment_reserve(&m->seg, (size_t)(rx->data - m->seg.base) + used, bytes - used);
    if (rc != STRATA_OK)
        return rc;
    sm_segment_enter(rx->data + used, bytes - used);
    rx->offered = (uint8_t)step;
    /* Release: pairs with the sender's acquire. */
    atomic_store_explicit(&rx->ctl->offered, step, memory_order_release);
    return STRATA_OK;
}

bool sm_area_read(struct sm_module *m, struct sm_ring_rx *rx, uint64_t word)
{
    uint32_t kind = sm_word_kind(word), step = sm_word_len(word);

    if (kind == SM_AREA_TURN) {
        if (step <= rx->step || step > rx->offered)
            return false;
        sm_ring_rx_widen(rx, &m->seg.geometry, step);
        sm_ring_publish_consumed(rx); /* until it has seen this, the sender leaves out a part of the area */
        return true;
    }
    if (kind > SM_AREA_TURN || step == 0 || step > sm_area_last(&m->seg.geometry))
        return false;
    if (sm_area_offer(m, rx, step) != STRATA_OK) {
        st_log(m->btl.context, ST_LOG_INFO, "btl_sm", "no memory for more of a ring (%s)", strerror(errno));
        if (kind == SM_AREA_NEED) /* the shared queue carries everything */
            sm_ring_give_up(m, rx->index);
    }
    return true;
}
