/* mpool "hugepage": large pages for what is large, and on the right NUMA node. */
#ifndef MPOOL_HUGEPAGE_H
#define MPOOL_HUGEPAGE_H

#include <hwloc.h>
#include <strata/sdk/mpool.h>

struct huge_config {
    size_t page_size; /* of a large page; 0: the system's default */
    bool place;       /* bind to the NUMA node of the processors that this process may use */
};

struct huge {
    struct st_mpool base;
    const struct huge_config *config;
    struct st_shared_file file;
    size_t large;              /* bytes of a large page; 0: the system has none */
    bool said;                 /* that there are no reserved pages left */
    bool looked;               /* for NUMA nodes */
    hwloc_topology_t topology; /* NULL: one node, or not looked yet */
};

/* place.c: the pages of [memory, memory + bytes) come from the node where this process runs, as they are touched;
 * nothing when there is one node, or when it runs on several. */
void huge_place(struct huge *h, void *memory, size_t bytes);
void huge_place_end(struct huge *h);

#endif
