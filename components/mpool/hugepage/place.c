/* On which NUMA node memory lies: where its first touch happens, unless that is on another node by chance. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include "hugepage.h"

/* Nodes of the machine by the kernel's list: a topology is only loaded, which takes milliseconds, where there are
 * several.
 */
static int huge_count_nodes(void)
{
    DIR *d = opendir("/sys/devices/system/node");
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        n += strncmp(e->d_name, "node", 4) == 0 && e->d_name[4] >= '0' && e->d_name[4] <= '9';
    if (d)
        closedir(d);
    return n;
}

static void huge_look(struct huge *h)
{
    h->looked = true;
    if (huge_count_nodes() < 2 || hwloc_topology_init(&h->topology) != 0)
        return;
    hwloc_topology_set_all_types_filter(h->topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(h->topology) != 0)
        huge_place_end(h);
}

void huge_place(struct huge *h, void *memory, size_t bytes)
{
    if (!h->config->place)
        return;
    if (!h->looked)
        huge_look(h);
    if (!h->topology)
        return;
    hwloc_bitmap_t where = hwloc_bitmap_alloc(), nodes = hwloc_bitmap_alloc();
    /* The processors that this process may use: a rank is bound, or its memory is best left to chance. */
    if (where && nodes && hwloc_get_cpubind(h->topology, where, HWLOC_CPUBIND_PROCESS) == 0) {
        hwloc_cpuset_to_nodeset(h->topology, where, nodes);
        if (hwloc_bitmap_weight(nodes) == 1)
            (void)hwloc_set_area_membind(h->topology, memory, bytes, nodes, HWLOC_MEMBIND_BIND,
                                         HWLOC_MEMBIND_BYNODESET);
    }
    hwloc_bitmap_free(where);
    hwloc_bitmap_free(nodes);
}

void huge_place_end(struct huge *h)
{
    if (h->topology)
        hwloc_topology_destroy(h->topology);
    h->topology = NULL;
}
