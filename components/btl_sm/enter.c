/* The directory of a peer: entering it, to send there, and leaving it. */
#include "directory.h"
#include "attach.h"
#include "send.h"
#include "senders.h"
#include "sm.h"
#include "wake.h"

#include <stdio.h>
#include <unistd.h>

#include <strata/sdk/hash.h>

uint32_t sm_dir_claim(struct sm_dir_entry *dir, uint32_t n, int rank)
{
    /* Not all from the same place: many may come at once. */
    uint32_t at = (uint32_t)(((st_hash(sm_dir_name(rank)) >> 32) * n) >> 32);

    for (uint32_t i = 0; i < n; i++, at = at + 1 < n ? at + 1 : 0) {
        uint32_t seen = atomic_load_explicit(&dir[at].name, memory_order_relaxed);
        /* Acquire: pairs with the owner's release in sm_sender_take_back, which has cleared the grant. */
        if (seen == 0 && atomic_compare_exchange_strong_explicit(&dir[at].name, &seen, sm_dir_name(rank),
                                                                 memory_order_acquire, memory_order_relaxed))
            return at;
    }
    return SM_DIR_NONE;
}

static struct sm_dir_entry *sm_enter_directory(const struct sm_peer *p)
{
    struct sm_layout at;

    sm_layout_make(&p->geometry, &at);
    return (struct sm_dir_entry *)(void *)(p->base + at.directory);
}

/* Back to the entry that I left, if the owner has not taken it yet; else a new one. */
static uint32_t sm_enter_claim(struct sm_peer *p, struct sm_dir_entry *dir)
{
    int rank = sm_module(p->ep.btl)->rte->rank;
    uint32_t mine = sm_dir_name(rank) | SM_DIR_LEFT, i = p->left_index;

    p->left_index = SM_DIR_NONE;
    if (i != SM_DIR_NONE && atomic_compare_exchange_strong_explicit(&dir[i].name, &mine, sm_dir_name(rank),
                                                                    memory_order_acquire, memory_order_relaxed))
        return i;
    i = sm_dir_claim(dir, p->geometry.n_dir, rank);
    if (i != SM_DIR_NONE)
        p->hot.left = 0;
    return i;
}

int sm_enter(struct sm_peer *p, int64_t timeout_ms, char *why, size_t why_size)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_dir_entry *dir;
    uint32_t i;

    if (p->my_index != SM_DIR_NONE)
        return STRATA_OK;
    if (p->gone || atomic_load_explicit(&p->header->closing, memory_order_relaxed)) {
        snprintf(why, why_size, "rank %d has ended", p->ep.rank);
        return STRATA_ERR_UNREACHABLE;
    }
    dir = sm_enter_directory(p);
    i = sm_enter_claim(p, dir);
    /* Entries of those who have left are free when the owner gets to it: give it time, and serve those who may wait for
     * us in the same way. */
    for (int64_t waited = 0; i == SM_DIR_NONE; waited++) {
        atomic_fetch_add_explicit(&p->header->crowd, 1, memory_order_release);
        sm_wake_peer(p);
        if (waited >= timeout_ms)
            break;
        sm_socket_serve(m);
        (void)sm_dir_sweep(m, false);
        usleep(1000);
        i = sm_enter_claim(p, dir);
    }
    if (i == SM_DIR_NONE) {
        snprintf(why, why_size, "rank %d has no room for another peer among %u; raise btl_sm_late_peers", p->ep.rank,
                 p->geometry.n_dir);
        return STRATA_ERR_UNREACHABLE;
    }
    p->my_index = i;
    p->grant = &dir[i].grant;
    return STRATA_OK;
}

void sm_leave(struct sm_peer *p)
{
    struct sm_module *m = sm_module(p->ep.btl);
    uint32_t mine = sm_dir_name(m->rte->rank);

    if (p->my_index == SM_DIR_NONE)
        return;
    /* The ring goes back by a BYE. If it is full, SM_DIR_LEFT alone says so, for good. */
    if (p->hot.word == ST_HOT_NONE || (sm_grant_changed(p, 0) == STRATA_OK && p->hot.word == ST_HOT_NONE))
        p->left_index = p->my_index;
    p->hot.word = ST_HOT_NONE;
    /* Release: pairs with the owner's acquire: all that came under this name is there. By comparison: an entry that
     * somebody else has overwritten is not ours to change. */
    (void)atomic_compare_exchange_strong_explicit(&sm_enter_directory(p)[p->my_index].name, &mine, mine | SM_DIR_LEFT,
                                                  memory_order_release, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->header->leavers, 1, memory_order_release);
    p->my_index = SM_DIR_NONE;
    p->grant = &m->no_grant;
}
