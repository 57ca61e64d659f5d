/* One core per rank, found with hwloc. Only strata-run loads the topology: the ranks inherit a mask. */
#define _GNU_SOURCE
#include "bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include "report.h"

/* Fills out->sets with the usable processors of each core that has any. */
static int find_cores(hwloc_topology_t topology, const cpu_set_t *allowed, struct binding *out)
{
    int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    bool cores = n > 0;
    if (!cores) /* a machine that does not show its cores: a processor counts as one */
        n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    if (n <= 0)
        return -1;
    out->sets = calloc((size_t)n, sizeof(*out->sets));
    if (!out->sets)
        return -1;
    for (int i = 0; i < n; i++) {
        hwloc_obj_t core = hwloc_get_obj_by_type(topology, cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU, (unsigned)i);
        cpu_set_t set;
        if (!core || hwloc_cpuset_to_glibc_sched_affinity(topology, core->cpuset, &set, sizeof(set)) != 0)
            continue;
        CPU_AND(&set, &set, allowed);
        if (CPU_COUNT(&set) > 0)
            out->sets[out->n_sets++] = set;
    }
    return out->n_sets > 0 ? 0 : -1;
}

int binding_create(const struct run_options *options, struct binding *out)
{
    cpu_set_t allowed;
    *out = (struct binding){NULL, 0};
    if (options->bind == RUN_BIND_NONE)
        return 0;
    CPU_ZERO(&allowed);
    bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
    if (options->bind == RUN_BIND_AUTO && (!known || options->n > CPU_COUNT(&allowed)))
        return 0; /* fewer processors than ranks: no need to look for cores */
    hwloc_topology_t topology;
    if (known && hwloc_topology_init(&topology) == 0) {
        hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
        hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
        if (hwloc_topology_load(topology) == 0)
            (void)find_cores(topology, &allowed, out);
        hwloc_topology_destroy(topology);
    }
    if (options->bind == RUN_BIND_CORE && out->n_sets == 0) {
        report_error("--bind-to core: this machine's cores cannot be found");
        return -1;
    }
    if (options->bind == RUN_BIND_AUTO && options->n > out->n_sets)
        binding_destroy(out);
    return 0;
}

void binding_destroy(struct binding *binding)
{
    free(binding->sets);
    *binding = (struct binding){NULL, 0};
}
