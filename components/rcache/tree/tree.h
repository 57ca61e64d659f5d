/* Ranges by their beginning, with the furthest end below each branch: a B+ tree. It answers "which range contains this
 * one" and "which range shares a byte with this one" in O(log n), overlapping and equal ranges allowed.
 *
 * A wide node costs a few cache lines where a binary tree pays one per level: of 10^5 ranges a look-up touches five
 * nodes. Nodes that become empty are freed and others never merged, which is enough for a cache: what shrinks by being
 * invalidated grows again at the same addresses. Not thread safe. */
#ifndef RCACHE_RCACHE_TREE_H
#define RCACHE_RCACHE_TREE_H

#include <strata/sdk/rcache.h>
#include <strata/sdk/slab.h>

enum { TREE_FAN = 16 };

struct tree_node {
    uintptr_t key[TREE_FAN]; /* a leaf's: where the range begins; else: at most the least below; unused: UINTPTR_MAX */
    uintptr_t end[TREE_FAN]; /* where it ends; the furthest end below */
    void *child[TREE_FAN];   /* struct tree_range in a leaf, else struct tree_node */
    struct tree_node *parent;
    uint32_t n;
    bool leaf;
};

/* A range in the tree: first member of an entry. */
struct tree_range {
    struct st_rcache_entry base;
    struct tree_node *at; /* the leaf that holds it, or NULL */
};

struct tree {
    struct tree_node *root;
    struct st_slab *nodes; /* of struct tree_node; several maps may share it */
};

/* Adds r, whose base.from, to and access are set and `at` is NULL. STRATA_OK or STRATA_ERR_NOMEM (nothing added). */
int tree_add(struct tree *m, struct tree_range *r);
/* Takes r out; r->at becomes NULL. */
void tree_remove(struct tree *m, struct tree_range *r);
/* One that begins at or before `from`, ends at or behind `to` and has all bits of `access`, or NULL. */
struct tree_range *tree_covering(const struct tree *m, uintptr_t from, uintptr_t to, uint32_t access);
/* One that shares a byte with [from, to), or NULL. */
struct tree_range *tree_overlapping(const struct tree *m, uintptr_t from, uintptr_t to);

#endif
