/* Room for messages that were refused. A process that is about to sleep, and has been refused, leaves a bit in the
 * header of each peer that could make room: the owner of the ring or queue, and those who hold a cell. The owner looks
 * for bits when it gives room back, a quarter of a ring or some slots at a time, and wakes who left them. The order of
 * the two is that of wake.c: the bit, membarrier, the look for room; here the room, then the look for bits. */
#include "area.h"
#include "ring_inl.h"
#include "send.h"
#include "senders.h"
#include "sm.h"
#include "wake.h"

int sm_room_wanted(struct sm_peer *p, uint8_t what)
{
    p->wants |= what;
    sm_module(p->ep.btl)->wanting = true;
    return STRATA_ERR_AGAIN;
}

/* The bit of an index in a directory. Peers may share one: then both are woken. */
static uint64_t room_bit_of(uint32_t index)
{
    return 1ull << (index & 63);
}

static void room_ask(struct sm_peer *p)
{
    if (!p->gone && p->my_index != SM_DIR_NONE)
        atomic_fetch_or_explicit(&p->header->starved, room_bit_of(p->my_index), memory_order_release);
}

void sm_room_ask(struct sm_module *m)
{
    for (struct sm_peer *p = m->peers; p; p = p->next) {
        if (p->wants || sm_cells_out(m, p->ep.rank))
            room_ask(p);
    }
}

/* More room in the ring since it was last looked at: more was read, or its data area may become larger. */
static bool room_in_ring(struct sm_ring_tx *tx)
{
    return sm_ring_look(tx) || (sm_area_offered(tx) && sm_ring_claim(tx));
}

/* Whether there is now some of what was refused. To end a ring that was revoked takes room in it, as a message does. */
static bool room_is_there(struct sm_module *m, struct sm_peer *p)
{
    uint32_t index;

    if (p->gone || p->failed ||
        st_hot_turn(&p->hot, atomic_load_explicit(p->grant, memory_order_relaxed)) == ST_HOT_TAKE)
        return true;
    if (p->wants & SM_WANTS_RING && (p->hot.word == ST_HOT_NONE || room_in_ring(&p->tx)))
        return true;
    if (p->wants & SM_WANTS_SLOT && sm_queue_has_room(&p->header->tail, p->slots, p->n_slots))
        return true;
    return p->wants & SM_WANTS_CELL && sm_cell_get(m, &index);
}

bool sm_room_found(struct sm_module *m)
{
    bool found = false, wanting = false;

    for (struct sm_peer *p = m->peers; p; p = p->next) {
        if (!p->wants)
            continue;
        if (room_is_there(m, p)) {
            p->wants = 0;
            found = true;
        }
        wanting |= p->wants != 0;
    }
    m->wanting = wanting;
    return found;
}

void sm_room_made_slow(struct sm_module *m)
{
    uint64_t who = atomic_exchange_explicit(&m->header->starved, 0, memory_order_acq_rel);

    for (uint32_t i = 0; i < m->n_dir; i++) {
        struct sm_peer *p = NULL;
        if (!(who & room_bit_of(i)) || !sm_known(m, i))
            continue;
        p = m->senders[i].peer;
        if ((p || sm_peer_get(m, sm_rank_at(m, i), &p) == STRATA_OK) && !p->gone)
            sm_wake_peer(p);
    }
}
