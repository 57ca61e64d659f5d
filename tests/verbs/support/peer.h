/* A second process of a case: forked, joined with the first by a socket pair, over which the two exchange addresses and
 * keep step. Each process opens the device for itself, after the fork. */
#ifndef VERBS_SUPPORT_PEER_H
#define VERBS_SUPPORT_PEER_H

#include "support/end.h"
#include <sys/types.h>

struct peer {
    pid_t pid;
    int fd;
};

/* Runs fn(fd, arg) in a child, which then exits with 0; a failed assertion there ends it with another status. */
struct peer peer_start(void (*fn)(int fd, void *arg), void *arg);
/* The child ended, with status 0. */
void peer_finish(struct peer *p);
void peer_kill(struct peer *p);

/* Whole blocks, or the case fails (the other process is gone). */
void tell(int fd, const void *p, size_t n);
void hear(int fd, void *p, size_t n);
/* Both come to this point before either goes on. */
void meet(int fd);
/* Swaps addresses with the other process, connects, and meets, so that both are ready. */
struct end_address end_join(struct end *e, int fd);

#endif
