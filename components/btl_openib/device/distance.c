/* See distance.h. */
#include "device/distance.h"
#include <string.h>
#include "device/device.h"

int ib_distance_in(hwloc_topology_t t, hwloc_const_cpuset_t bound, const char *device)
{
    hwloc_obj_t os = NULL, at;
    int steps = 0;

    while ((os = hwloc_get_next_osdev(t, os)) != NULL)
        if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && os->name && strcmp(os->name, device) == 0)
            break;
    at = os ? hwloc_get_non_io_ancestor_obj(t, os) : NULL;
    if (!at)
        return -1;
    for (; at && !hwloc_bitmap_intersects(at->cpuset, bound); at = at->parent)
        steps++;
    return steps;
}

void ib_distances(struct ib_device *d, size_t n)
{
    hwloc_topology_t t;
    hwloc_bitmap_t bound;

    for (size_t i = 0; i < n; i++)
        d[i].distance = -1;
    if (n < 2 || !d[0].par->near_first || hwloc_topology_init(&t) != 0)
        return;
    bound = hwloc_bitmap_alloc();
    /* Graphics cards are left out: some are queried over a network. */
    (void)hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "gl");
    if (bound && hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
        hwloc_topology_load(t) == 0 && hwloc_get_cpubind(t, bound, HWLOC_CPUBIND_PROCESS) == 0)
        for (size_t i = 0; i < n; i++)
            d[i].distance = ib_distance_in(t, bound, ibv_get_device_name(d[i].verbs->device));
    hwloc_bitmap_free(bound);
    hwloc_topology_destroy(t);
}
