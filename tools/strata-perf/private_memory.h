/* Memory that only this process holds, as the kernel counts it. */
#ifndef PERF_PRIVATE_MEMORY_H
#define PERF_PRIVATE_MEMORY_H

/* Private_Clean + Private_Dirty of /proc/self/smaps_rollup, in bytes; negative when it cannot be read. Allocates
 * nothing, so that measuring does not change what is measured. */
long perf_private_memory(void);

#endif
