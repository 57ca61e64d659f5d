/* Sleeping, and being woken by what arrives and by room for what was refused. */
#ifndef SM_WAKE_H
#define SM_WAKE_H

#include "peer.h"

/* sm_header.sleeping: how the owner sleeps. */
enum { SM_AWAKE, SM_SLEEPS_ON_WORD, SM_SLEEPS_ON_SOCKET };

/* Room at a peer that was asked for in vain: sm_peer.wants. */
enum { SM_WANTS_RING = 1, SM_WANTS_SLOT = 2, SM_WANTS_CELL = 4 };

/* wake.c */
void sm_wake_init(void);
/* Wakes the peer if it sleeps; one of several callers pays for the system call. */
void sm_wake_peer(struct sm_peer *p);
/* Whether the owner sleeps: looked at after something was published for it. The fence keeps the compiler from looking
 * first; that the processors keep the order the sleeper sees to, by membarrier, so that only a load is paid here. */
static inline bool sm_asleep(const struct sm_peer *p)
{
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&p->header->sleeping, memory_order_relaxed);
}

/* arm.c */
int sm_arm(struct st_btl *btl, struct st_btl_wait *w);
void sm_disarm(struct st_btl *btl);

/* wake_socket.c */
/* My socket for wakes, made at the first call; -1: none can be had. */
int sm_wake_socket(struct sm_module *m);
void sm_wake_socket_send(struct sm_module *m, const uint8_t key[16]); /* to the process of that key */
void sm_wake_socket_empty(struct sm_module *m);                       /* takes what has come */
void sm_wake_socket_close(struct sm_module *m);

/* room.c */
/* A send to p met STRATA_ERR_AGAIN. Returns that. */
int sm_room_wanted(struct sm_peer *p, uint8_t what);
/* Before a sleep: asks the peers concerned to wake me when they have made room. */
void sm_room_ask(struct sm_module *m);
/* After that: whether there is room already, so that a send is worth trying. */
bool sm_room_found(struct sm_module *m);
/* This process has read messages: wakes those who have asked. */
void sm_room_made_slow(struct sm_module *m);

#endif
