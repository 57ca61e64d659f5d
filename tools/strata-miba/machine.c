/* Whether memory is there; processors. */
#include "config.h"
#include "machine.h"

#include "tools/shared/spare_memory.h"

enum miba_status machine_spares(uint64_t bytes, struct miba_why *why)
{
    const uint64_t spare = spare_memory("");

    if (bytes <= spare / 4 * 3)
        return MIBA_OK;
    return miba_fail(why, MIBA_SKIPPED, "%llu bytes: the machine has %llu to spare", (unsigned long long)bytes,
                     (unsigned long long)spare);
}

int machine_processor(const cpu_set_t *permitted, int but)
{
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (i != but && CPU_ISSET((size_t)i, permitted))
            return i;
    return -1;
}

cpu_set_t machine_loaders(const cpu_set_t *permitted, int own, int other, bool own_sleeps)
{
    cpu_set_t left = *permitted;

    if (other >= 0)
        CPU_CLR((size_t)other, &left);
    if (own >= 0 && !own_sleeps)
        CPU_CLR((size_t)own, &left);
    if (own >= 0 && CPU_COUNT(&left) == 0)
        CPU_SET((size_t)own, &left);
    return CPU_COUNT(&left) ? left : *permitted;
}
