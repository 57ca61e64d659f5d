/* Processes that fork: see docs/design/memory.md, "Fork". */
#ifndef IB_FORK_H
#define IB_FORK_H

#include <stdbool.h>

/* Makes forks of this process harmless to memory that a device uses, if the kernel does not see to that by itself and
 * it is wanted: then libibverbs keeps registered pages out of children (ibv_fork_init(3)). Before any memory is
 * registered. 0, or an errno: a fork is dangerous. */
int ib_fork_prepare(bool wanted);
/* Why it could not. */
const char *ib_fork_why(int error);

#endif
