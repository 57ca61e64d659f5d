/* The directory of this process: believing the entries of those who send here, and taking them back. */
#include "senders.h"
#include "liveness.h"
#include "polling.h"
#include "ring_inl.h"

/* Believed is an entry that names another rank of this machine which has no entry yet, but perhaps one that it left. */
bool sm_known_slow(struct sm_module *m, uint32_t src)
{
    /* Acquire: pairs with sm_leave: who has left one entry before claiming the next is seen to have left it. */
    uint32_t name = atomic_load_explicit(&m->dir[src].name, memory_order_acquire) & ~SM_DIR_LEFT;
    int rank = (int)(name - 1);

    if (name == 0 || name > (uint32_t)m->rte->size || rank == m->rte->rank || !m->rte->ops->is_local(m->rte, rank))
        return false;
    for (uint32_t i = 0; i < m->n_dir; i++) {
        if (m->senders[i].name == name &&
            !(atomic_load_explicit(&m->dir[i].name, memory_order_relaxed) & SM_DIR_LEFT)) {
            sm_peer_violation(m, rank, "a second entry in the directory");
            return false;
        }
    }
    m->senders[src] = (struct sm_sender){.peer = sm_peer_find(m, rank), .name = name};
    m->newcomers++;
    sm_ring_spare(m);
    return true;
}

bool sm_named(const struct sm_module *m, int rank)
{
    for (uint32_t i = 0; i < m->n_dir; i++) {
        if (m->senders[i].name == sm_dir_name(rank) ||
            (atomic_load_explicit(&m->dir[i].name, memory_order_relaxed) & ~SM_DIR_LEFT) == sm_dir_name(rank))
            return true;
    }
    return false;
}

/* The ring of a sender, or NULL. */
static struct sm_ring_rx *sm_sender_ring(struct sm_module *m, uint32_t src)
{
    uint32_t i = st_hot_place_of(&m->hot, src);

    return i == ST_HOT_NONE ? NULL : &m->rings[i];
}

static bool sm_ring_is_broken(const struct sm_module *m, const struct sm_ring_rx *rx)
{
    return m->hot.places[rx->index].state == ST_HOT_BROKEN;
}

/* Whether all that came under this name has been read. */
static bool sm_sender_drained(struct sm_module *m, uint32_t src, const struct sm_ring_rx *rx)
{
    uint64_t word;

    if (rx && sm_ring_poll(rx, &word))
        return false;
    for (uint32_t i = 0; i <= m->queue.mask; i++) {
        uint64_t state = atomic_load_explicit(&m->queue.slots[i].state, memory_order_relaxed);
        if ((uint8_t)state != SM_SLOT_EMPTY && sm_state_src(state) == src)
            return false;
    }
    return true;
}

/* Takes an entry back from who will not write any more. False: it is too early. A broken ring is never read, nor is its
 * memory given to others: its entry stays with it. */
static bool sm_sender_take_back(struct sm_module *m, uint32_t src, uint32_t name)
{
    struct sm_ring_rx *rx = sm_sender_ring(m, src);

    if (rx && sm_ring_is_broken(m, rx))
        return true;
    /* From here on it cannot come back to this entry, nor has it since we looked. Acquire: pairs with sm_leave. */
    if (!atomic_compare_exchange_strong_explicit(&m->dir[src].name, &name, SM_DIR_LEFT, memory_order_acquire,
                                                 memory_order_relaxed))
        return true;
    if (!sm_sender_drained(m, src, rx)) {
        atomic_store_explicit(&m->dir[src].name, name, memory_order_relaxed);
        return false;
    }
    if (rx) {
        sm_ring_publish_consumed(rx);
        sm_ring_left(m, rx->index);
    }
    m->senders[src] = (struct sm_sender){0};
    atomic_store_explicit(&m->dir[src].grant, 0, memory_order_relaxed);
    /* Release: pairs with sm_dir_claim. */
    atomic_store_explicit(&m->dir[src].name, 0, memory_order_release);
    m->count.taken_back++;
    return true;
}

/* A published entry does not change but for SM_DIR_LEFT: somebody writes where he should not. What comes under this
 * name from now on has to be believed anew. */
static void sm_sender_disbelieve(struct sm_module *m, uint32_t src)
{
    struct sm_ring_rx *rx = sm_sender_ring(m, src);
    int rank = (int)(m->senders[src].name - 1);

    m->senders[src] = (struct sm_sender){0};
    if (rx && !sm_ring_is_broken(m, rx))
        sm_ring_broken(m, rx->index);
    sm_peer_violation(m, rank, "an entry of the directory that changed");
}

bool sm_rank_dead(struct sm_module *m, int rank)
{
    const struct sm_peer *p = sm_peer_find(m, rank);
    uint32_t pid;

    if (p)
        return !sm_peer_alive(p);
    pid = sm_pid_of(m, rank);
    return pid != 0 && !sm_process_alive(pid);
}

void sm_queue_unstick(struct sm_module *m)
{
    uint32_t src;

    if (sm_queue_stuck(&m->queue, &src) && (!sm_known(m, src) || sm_rank_dead(m, sm_rank_at(m, src))))
        (void)sm_queue_skip(&m->queue);
}

static void sm_senders_sweep(struct sm_module *m, bool look_for_dead)
{
    /* Acquire: who is counted has marked its entry. */
    uint32_t leavers = atomic_load_explicit(&m->header->leavers, memory_order_acquire);
    bool more = false;

    for (uint32_t i = 0; i < m->n_dir; i++) {
        /* Acquire: pairs with sm_leave; what drained looks at was written before. */
        uint32_t name = atomic_load_explicit(&m->dir[i].name, memory_order_acquire), rank1 = name & ~SM_DIR_LEFT;
        bool left = name & SM_DIR_LEFT;

        if (m->senders[i].name && m->senders[i].name != rank1) {
            sm_sender_disbelieve(m, i);
            continue;
        }
        if (name == 0)
            continue;
        if (!left && look_for_dead && rank1 <= (uint32_t)m->rte->size &&
            m->rte->ops->is_local(m->rte, (int)(rank1 - 1)))
            left = sm_rank_dead(m, (int)(rank1 - 1));
        if (left && !sm_sender_take_back(m, i, name))
            more = true;
    }
    m->leavers_seen = leavers;
    m->sweep_again = more ? look_for_dead ? SM_SWEEP_DEAD : SM_SWEEP : SM_SWEEP_NOT;
}

bool sm_dir_sweep(struct sm_module *m, bool look_for_dead)
{
    uint32_t crowd = atomic_load_explicit(&m->header->crowd, memory_order_acquire);

    look_for_dead |= crowd != m->crowd_seen || m->sweep_again == SM_SWEEP_DEAD;
    m->crowd_seen = crowd;
    if (look_for_dead || m->sweep_again == SM_SWEEP ||
        atomic_load_explicit(&m->header->leavers, memory_order_relaxed) != m->leavers_seen) {
        uint64_t before = m->count.taken_back;
        sm_senders_sweep(m, look_for_dead);
        return m->count.taken_back != before;
    }
    return false;
}
