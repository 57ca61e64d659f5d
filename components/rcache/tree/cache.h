/* rcache "tree": registrations are kept after their use, found again by the memory they contain, and undone when that
 * memory goes away, or the oldest first when there are too many. */
#ifndef RCACHE_CACHE_H
#define RCACHE_CACHE_H

#include <strata/sdk/hash.h>
#include <strata/sdk/list.h>
#include "mailbox.h"
#include "tree.h"

struct cache_config {
    size_t max_bytes;    /* 0: by limits.c */
    int64_t max_entries; /* registrations kept */
};

/* A registration. `live`: in its client's tree, to be handed out. Not live: its memory went away while it was in use.
 */
struct cache_entry {
    struct tree_range range;
    /* Live: in cache.idle, oldest first, or in no list (then it is in use; but one in use may still be in the list, and
     * is taken out of it when it comes to be evicted). Not live: in its client's list of the dead. */
    struct st_node node;
};
_Static_assert(sizeof(struct cache_entry) == 64, "one cache line");

/* A client's entries. */
struct cache_client {
    struct tree ranges;  /* live entries */
    struct st_node dead; /* entries in use whose memory went away */
    struct st_node node; /* in cache.clients */
};

/* Which entry served last for a first page: a guess, checked before it is used, that saves the way through the tree.
 * Entries live in slabs that are never given back before the cache is closed, so one that was dropped since can still
 * be looked at: it is not live. */
struct cache_memo {
    struct cache_entry **slot; /* 1 << bits of them, NULL where nothing is known */
    unsigned bits;
};

struct cache {
    struct st_rcache base;
    struct mailbox *gone;
    struct st_node clients, idle;
    struct st_slab entries, nodes;
    struct cache_memo memo;
    uint64_t max_bytes, max_entries;
    struct st_rcache_counters n;
    /* Somebody is inside. Ops wait for each other for the sake of before_fork alone, which does not wait. */
    _Atomic(bool) busy;
};

/* STRATA_OK or STRATA_ERR_NOMEM. */
int cache_memo_init(struct cache_memo *memo);
/* Keeps it at two to four slots for each of n entries; without memory it stays as small as it is. */
void cache_memo_grow(struct cache_memo *memo, uint64_t n);
/* Where the guess for a buffer of the client is, that begins on page `from`. */
static inline struct cache_entry **cache_memo_at(const struct cache_memo *memo, const struct st_rcache_client *client,
                                                 uintptr_t from)
{
    uint64_t x = (uint64_t)from / 4096 + ((uint64_t)(uintptr_t)client << 24);
    return &memo->slot[st_hash(x) >> (64 - memo->bits)];
}

/* How many bytes to keep registered: config->max_bytes, or as much as this process may lock and should. */
uint64_t cache_limit(const struct cache_config *config);

/* Makes a cache; see the component's parameters for config. */
int cache_make(strata_t *s, const struct cache_config *config, struct st_rcache **out);

#endif
