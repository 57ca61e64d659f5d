/* Memory that this machine has to spare. */
#ifndef MIBA_MACHINE_H
#define MIBA_MACHINE_H

#include <stdint.h>

/* Bytes of memory that are available; 0: the machine does not say. */
uint64_t machine_spare_bytes(void);

#endif
