/* Processes that fork: see docs/design/memory.md, "Fork". */
#ifndef IB_FORK_H
#define IB_FORK_H

#include <stdbool.h>

/* Keeps forks of this process from harming memory that a device uses, where the kernel does not and it is wanted:
 * libibverbs then keeps registered pages out of children (ibv_fork_init(3)). Called before any registration. 0, or an
 * errno: a fork is dangerous. */
int ib_fork_prepare(bool wanted);
/* Why it could not. */
const char *ib_fork_why(int error);

#endif
