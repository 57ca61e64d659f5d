/* rcache "tree": registrations are kept after their use, found again by the memory they contain, and undone when that
 * memory goes away, or the oldest first when there are too many. */
#ifndef RCACHE_TREE_TREE_H
#define RCACHE_TREE_TREE_H

#include <strata/sdk/list.h>
#include "mailbox.h"
#include "map.h"

struct tree_config {
    size_t max_bytes;    /* 0: by limits.c */
    int64_t max_entries; /* registrations kept */
};

/* A registration. `live`: in its client's map, to be handed out. Not live: its memory went away while it was in use. */
struct tree_entry {
    struct map_range range;
    /* Live: in tree.idle, oldest first, or in no list (then it is in use; but one in use may still be in the list, and
     * is taken out of it when it comes to be evicted). Not live: in its client's list of the dead. */
    struct st_node node;
};
_Static_assert(sizeof(struct tree_entry) == 64, "one cache line");

/* What a client has in the cache. */
struct tree_client {
    struct map map;      /* live entries */
    struct st_node dead; /* entries in use whose memory went away */
    struct st_node node; /* in tree.clients */
};

struct tree {
    struct st_rcache base;
    struct mailbox *gone;
    struct st_node clients, idle;
    struct st_slab entries, nodes;
    uint64_t max_bytes, max_entries;
    struct st_rcache_counters n;
};

/* How many bytes to keep registered: config->max_bytes, or as much as this process may lock and should. */
uint64_t tree_limit(const struct tree_config *config);

/* Makes a cache; see the component's parameters for config. */
int tree_make(strata_t *s, const struct tree_config *config, struct st_rcache **out);

#endif
