/* What the kernel counts of this process in /proc/self/smaps_rollup: page by page, where /proc/self/status may be late.
 */
#ifndef TEST_SUPPORT_ROLLUP_H
#define TEST_SUPPORT_ROLLUP_H

#include <stdio.h>
#include <string.h>

/* Sum of the lines that begin with `name`, in kB: "Private_" is what is clean and what is dirty; 0 without the file. */
static inline long rollup_kb(const char *name)
{
    char line[256];
    long sum = 0, kb;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line, "%*[^:]: %ld", &kb) == 1)
            sum += kb;
    if (f)
        fclose(f);
    return sum;
}

#endif
