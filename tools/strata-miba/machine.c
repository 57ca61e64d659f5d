/* Memory that this machine has to spare, by /proc/meminfo; processors. */
#include "config.h"
#include "machine.h"

#include <stdio.h>

uint64_t machine_spare_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (uint64_t)kib * 1024;
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
