/* See tree.h. Keys are lower bounds and need not be tight; ends are exact. */
#include "tree.h"

#include <string.h>

/* Entries whose key is at most k: they come first. Unused keys are UINTPTR_MAX, so that all are compared without a
 * branch; no range begins there. */
static inline uint32_t tree_rank_of(const struct tree_node *n, uintptr_t k)
{
    uint32_t c = 0;
    for (uint32_t i = 0; i < TREE_FAN; i++)
        c += n->key[i] <= k;
    return c;
}

static uintptr_t tree_furthest(const struct tree_node *n)
{
    uintptr_t end = 0;
    for (uint32_t i = 0; i < n->n; i++)
        end = n->end[i] > end ? n->end[i] : end;
    return end;
}

static uint32_t tree_index_of(const struct tree_node *n, const void *child)
{
    uint32_t i = 0;
    while (n->child[i] != child)
        i++;
    return i;
}

static struct tree_node *tree_node_new(struct tree *m, bool leaf)
{
    struct tree_node *n = st_slab_get(m->nodes);
    if (!n)
        return NULL;
    n->parent = NULL;
    n->n = 0;
    n->leaf = leaf;
    for (uint32_t i = 0; i < TREE_FAN; i++)
        n->key[i] = UINTPTR_MAX;
    return n;
}

static void tree_adopt(struct tree_node *n, void *child)
{
    if (n->leaf)
        ((struct tree_range *)child)->at = n;
    else
        ((struct tree_node *)child)->parent = n;
}

static void tree_insert_at(struct tree_node *n, uint32_t i, uintptr_t key, uintptr_t end, void *child)
{
    size_t tail = n->n - i;
    memmove(&n->key[i + 1], &n->key[i], tail * sizeof(n->key[0]));
    memmove(&n->end[i + 1], &n->end[i], tail * sizeof(n->end[0]));
    memmove(&n->child[i + 1], &n->child[i], tail * sizeof(n->child[0]));
    n->key[i] = key;
    n->end[i] = end;
    n->child[i] = child;
    n->n++;
    tree_adopt(n, child);
}

static void tree_remove_at(struct tree_node *n, uint32_t i)
{
    size_t tail = n->n - i - 1;
    memmove(&n->key[i], &n->key[i + 1], tail * sizeof(n->key[0]));
    memmove(&n->end[i], &n->end[i + 1], tail * sizeof(n->end[0]));
    memmove(&n->child[i], &n->child[i + 1], tail * sizeof(n->child[0]));
    n->key[--n->n] = UINTPTR_MAX;
}

/* Splits child i of p, which is full, where p has room. */
static int tree_split(struct tree *m, struct tree_node *p, uint32_t i)
{
    struct tree_node *left = p->child[i], *right = tree_node_new(m, left->leaf);
    const uint32_t half = TREE_FAN / 2;
    if (!right)
        return STRATA_ERR_NOMEM;
    for (uint32_t k = half; k < TREE_FAN; k++) {
        tree_insert_at(right, k - half, left->key[k], left->end[k], left->child[k]);
        left->key[k] = UINTPTR_MAX;
    }
    left->n = half;
    p->end[i] = tree_furthest(left);
    tree_insert_at(p, i + 1, right->key[0], tree_furthest(right), right);
    return STRATA_OK;
}

static int tree_grow_root(struct tree *m)
{
    struct tree_node *old = m->root, *top = tree_node_new(m, old == NULL);
    if (!top)
        return STRATA_ERR_NOMEM;
    if (old) {
        tree_insert_at(top, 0, old->key[0], tree_furthest(old), old);
        if (tree_split(m, top, 0) != STRATA_OK) {
            old->parent = NULL;
            st_slab_put(m->nodes, top);
            return STRATA_ERR_NOMEM;
        }
    }
    m->root = top;
    return STRATA_OK;
}

int tree_add(struct tree *m, struct tree_range *r)
{
    const uintptr_t from = r->base.from, to = r->base.to;
    if ((!m->root || m->root->n == TREE_FAN) && tree_grow_root(m) != STRATA_OK)
        return STRATA_ERR_NOMEM;
    /* First make room all the way down, which may fail and changes nothing that a look-up sees; then add. */
    struct tree_node *n = m->root;
    while (!n->leaf) {
        uint32_t i = tree_rank_of(n, from);
        i -= i > 0;
        struct tree_node *child = n->child[i];
        if (child->n == TREE_FAN) {
            if (tree_split(m, n, i) != STRATA_OK)
                return STRATA_ERR_NOMEM;
            i += n->key[i + 1] <= from;
            child = n->child[i];
        }
        n = child;
    }
    tree_insert_at(n, tree_rank_of(n, from), from, to, r);
    for (struct tree_node *p = n->parent; p; n = p, p = p->parent) {
        uint32_t i = tree_index_of(p, n);
        p->key[i] = from < p->key[i] ? from : p->key[i];
        p->end[i] = to > p->end[i] ? to : p->end[i];
    }
    return STRATA_OK;
}

void tree_remove(struct tree *m, struct tree_range *r)
{
    struct tree_node *n = r->at;
    tree_remove_at(n, tree_index_of(n, r));
    r->at = NULL;
    for (struct tree_node *p = n->parent; p; p = n->parent) {
        uint32_t i = tree_index_of(p, n);
        if (n->n == 0) {
            tree_remove_at(p, i);
            st_slab_put(m->nodes, n);
        } else {
            p->end[i] = tree_furthest(n);
        }
        n = p;
    }
    while (m->root->n == 0 || (!m->root->leaf && m->root->n == 1)) {
        struct tree_node *top = m->root;
        m->root = top->n ? top->child[0] : NULL;
        st_slab_put(m->nodes, top);
        if (!m->root)
            return;
        m->root->parent = NULL;
    }
}

static struct tree_range *tree_covering_child(const struct tree_node *n, uintptr_t from, uintptr_t to, uint32_t access)
{
    /* Backwards: the nearest beginning is the likeliest. Only the first branch taken can disappoint, for its furthest
     * end may belong to a range that begins behind `from`; and one that lacks access. */
    for (uint32_t i = tree_rank_of(n, from); i-- > 0;) {
        if (n->end[i] < to)
            continue;
        if (n->leaf) {
            struct tree_range *r = n->child[i];
            if ((r->base.access & access) == access)
                return r;
        } else {
            struct tree_range *r = tree_covering_child(n->child[i], from, to, access);
            if (r)
                return r;
        }
    }
    return NULL;
}

struct tree_range *tree_covering(const struct tree *m, uintptr_t from, uintptr_t to, uint32_t access)
{
    return m->root ? tree_covering_child(m->root, from, to, access) : NULL;
}

struct tree_range *tree_overlapping(const struct tree *m, uintptr_t from, uintptr_t to)
{
    const struct tree_node *n = m->root;
    if (!n || from >= to)
        return NULL;
    /* The first branch with an end behind `from` holds the least beginning of all that end behind it: when that one
     * begins too late, all do. Keys that are not tight only lead one step further down, to the same answer. */
    for (;;) {
        uint32_t i = 0;
        while (i < n->n && n->end[i] <= from)
            i++;
        if (i == n->n || n->key[i] >= to)
            return NULL;
        if (n->leaf)
            return n->child[i];
        n = n->child[i];
    }
}
