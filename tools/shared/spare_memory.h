/* Memory that a process may still take. */
#ifndef TOOLS_SPARE_MEMORY_H
#define TOOLS_SPARE_MEMORY_H

#include <stdint.h>

/* Bytes that the machine, and each control group of this process, have to spare; UINT64_MAX: nobody says. `root`: "",
 * or where a test has its own /proc and /sys. */
uint64_t spare_memory(const char *root);

#endif
