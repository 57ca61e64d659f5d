/* How far devices are from the processors that this process may run on. */
#ifndef IB_DISTANCE_H
#define IB_DISTANCE_H

#include <hwloc.h>

/* Steps from the device's place in the machine up to something that has a processor of `bound`: 0 when it is beside
 * them, -1 when the topology does not know it. */
int ib_distance_in(hwloc_topology_t t, hwloc_const_cpuset_t bound, const char *device);

struct ib_device;
/* Fills in `distance` of the devices. One alone gets -1: there is nothing to choose. */
void ib_distances(struct ib_device *d, size_t n);

#endif
