/* Processes that fork. A device goes on with the pages that were registered; of a page that both processes have after a
 * fork, whoever writes first gets another one, which the device does not know. */
#include "device/fork.h"

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

int ib_fork_prepare(bool wanted)
{
    /* Kernels since 5.12 copy registered pages for the child at the fork itself. */
    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
        return 0;
    return wanted ? ibv_fork_init() : EOPNOTSUPP;
}

const char *ib_fork_why(int error)
{
    return error == EOPNOTSUPP ? "btl_openib_fork_support is off"
           : error == EINVAL   ? "somebody has registered memory before"
                               : strerror(error);
}
