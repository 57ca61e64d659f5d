/* The directory as its owner sees it: which entries are believed, and taking them back. */
#ifndef SM_SENDERS_H
#define SM_SENDERS_H

#include "sm.h"

/* True when the entry `src` of my directory names a peer: sm_rank_at(m, src). */
bool sm_known_slow(struct sm_module *m, uint32_t src);
static inline bool sm_known(struct sm_module *m, uint32_t src)
{
    return src < m->n_dir && (m->senders[src].name != 0 || sm_known_slow(m, src));
}
static inline int sm_rank_at(const struct sm_module *m, uint32_t src)
{
    return (int)(m->senders[src].name - 1);
}
/* The peer of this entry has given it back, or nobody has it any more. */
static inline bool sm_has_left(const struct sm_module *m, uint32_t src)
{
    return atomic_load_explicit(&m->dir[src].name, memory_order_acquire) != m->senders[src].name;
}
/* Whether rank has an entry in my directory, left or not: something of it may be unread. */
bool sm_named(const struct sm_module *m, int rank);
/* Whether rank, which has published a card, is known not to live any more. */
bool sm_rank_dead(struct sm_module *m, int rank);
/* Takes the head of the queue back from a sender that died between claiming and publishing it. */
void sm_queue_unstick(struct sm_module *m);
/* Takes back the entries of processes that have left, and of dead ones if asked to or if somebody finds no room. Cheap
 * when there is nothing to do. True: there was. */
bool sm_dir_sweep(struct sm_module *m, bool look_for_dead);

#endif
