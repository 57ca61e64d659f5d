/* Whether there can be a verbs device, found out without libibverbs. */
#ifndef IB_PRESENT_H
#define IB_PRESENT_H

#include <stdbool.h>

/* The kernel's folders of devices: `classes` of sysfs, and `nodes` of /dev, which a container may have without sysfs.
 */
#define IB_CLASSES "/sys/class/infiniband_verbs"
#define IB_NODES   "/dev/infiniband"

/* False only when neither folder has an entry "uverbsN" and no libibverbs is in the process: one that is may be one
 * that has devices of its own, as softhca's. */
bool ib_may_be_present(const char *classes, const char *nodes);

/* Whether a folder has an entry "uverbsN". */
bool ib_uverbs_in(const char *folder);

#endif
