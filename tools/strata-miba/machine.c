/* Memory that this machine has to spare, by /proc/meminfo. */
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
