/* How much memory to keep registered. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cache.h"

/* The kernel does not hold a process with CAP_IPC_LOCK to RLIMIT_MEMLOCK. */
static bool cache_limited(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
    if (syscall(SYS_capget, &head, data) != 0)
        return true;
    return !(data[CAP_IPC_LOCK / 32].effective & (1u << (CAP_IPC_LOCK % 32)));
}

uint64_t cache_limit(const struct cache_config *config)
{
    if (config->max_bytes)
        return config->max_bytes;
    /* A quarter of the machine: several ranks share it. */
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
    struct rlimit lim;
    /* A quarter of what may be locked is left to the transports' own rings and queues. */
    if (cache_limited() && getrlimit(RLIMIT_MEMLOCK, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY &&
        (uint64_t)lim.rlim_cur / 4 * 3 < bytes)
        bytes = (uint64_t)lim.rlim_cur / 4 * 3;
    return bytes;
}
