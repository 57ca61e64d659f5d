/* The matching engine of one matching context: posted receives and unexpected messages, found by hash of (source, tag).
 * Knows no transport and no request: the entries are embedded in the caller's objects.
 *
 * A bin holds, for one key, the FIFO of posted receives and the FIFO of unexpected messages. Wildcard receives have
 * bins of their own, under keys with -1; every posted receive carries a sequence number, so that an arrival takes the
 * oldest of at most four heads. Unexpected messages are in the bin of their exact key and in one list of all in order
 * of arrival; the first search with one wildcard builds two more indexes (by tag, by source), which are kept from then
 * on. Tags below -1 are hidden (<strata/host.h>): a wildcard tag does not match them, so their messages are in a list
 * of their own and not in the index by source. So no search is ever linear. Empty bins stay until the table would grow.
 * Not thread safe. */
#ifndef OB1_MATCH_H
#define OB1_MATCH_H

#include <strata/sdk/hint.h>
#include <strata/sdk/list.h>
#include <strata/sdk/slab.h>

/* Which of the four kinds of key; also the index of an unexpected message's list nodes. */
enum { OB1_EXACT = 0, OB1_BY_TAG = 1, OB1_BY_SOURCE = 2, OB1_ANY = 3, OB1_KINDS = 4 };

struct ob1_bin {
    uint64_t key;
    struct ob1_bin *next; /* of the same slot */
    struct st_node posted;
    struct st_node unexpected;
};

/* A posted receive. */
struct ob1_posted {
    struct st_node node;
    uint64_t key;
    uint64_t seq;
};

/* An unexpected message. node[OB1_EXACT] and node[OB1_ANY] are always linked, the other two while the indexes exist. */
struct ob1_unexp {
    struct st_node node[OB1_KINDS];
    uint64_t key; /* exact */
};

struct ob1_match {
    struct ob1_bin *last;   /* the bin of an exact key used last; never NULL */
    uint32_t n_wild;        /* wildcard receives posted, all kinds */
    bool indexed;           /* unexpected messages are in the bins of one wildcard too */
    uint64_t post_seq;      /* receives ever posted */
    struct ob1_bin **table; /* mask + 1 slots */
    uint32_t mask;
    uint32_t n_bins;
    uint32_t wild[OB1_KINDS]; /* wildcard receives posted, by kind */
    uint64_t n_posted, n_unexpected;
    struct st_slab bins;
    /* All unexpected messages, oldest first, by node[OB1_ANY]: those that any tag matches, those with hidden tags. */
    struct st_node arrived, hidden;
    struct ob1_bin none; /* what `last` points to when there is none: its key is impossible */
};

int ob1_match_init(struct ob1_match *m);
void ob1_match_destroy(struct ob1_match *m);
size_t ob1_match_bytes(const struct ob1_match *m);

/* The bin of a key, made if need be (NULL: out of memory). */
struct ob1_bin *ob1_match_bin_slow(struct ob1_match *m, uint64_t key);
/* The bin of a key or NULL. */
struct ob1_bin *ob1_match_lookup(struct ob1_match *m, uint64_t key);

/* Wildcards: the paths out of line. */
struct ob1_posted *ob1_match_arrive_wild(struct ob1_match *m, struct ob1_bin *exact, uint64_t key);
int ob1_match_post_wild(struct ob1_match *m, struct ob1_posted *p, uint64_t key, struct ob1_unexp **found);
void ob1_match_index(struct ob1_match *m, struct ob1_unexp *u);

/* The oldest unexpected message for (src, tag), either of which may be -1; taken out of the engine when `take`. */
int ob1_match_find(struct ob1_match *m, int src, int tag, bool take, struct ob1_unexp **found);
/* Takes an unexpected message out. */
void ob1_match_remove(struct ob1_match *m, struct ob1_unexp *u);
/* Takes a posted receive out, which must be queued. */
void ob1_match_cancel(struct ob1_match *m, struct ob1_posted *p);
/* Any posted receive from exactly `src`, or of anything when src is -1, of a tag below `below`; INT_MAX: of any tag, a
 * wildcard included. Any unexpected message. NULL when there is none. Linear: for failures and tear-down. */
struct ob1_posted *ob1_match_any_posted(struct ob1_match *m, int src, int below);
struct ob1_unexp *ob1_match_any_unexpected(struct ob1_match *m);

ST_INLINE uint64_t ob1_key(int src, int tag)
{
    return (uint64_t)(uint32_t)src << 32 | (uint32_t)tag;
}

ST_INLINE int ob1_key_src(uint64_t key)
{
    return (int)(uint32_t)(key >> 32);
}

ST_INLINE int ob1_key_tag(uint64_t key)
{
    return (int)(uint32_t)key;
}

/* Neither source nor tag is a wildcard. */
ST_INLINE bool ob1_key_exact(uint64_t key)
{
    return ob1_key_src(key) >= 0 && ob1_key_tag(key) != -1;
}

ST_INLINE void ob1_unlink(struct st_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
}

ST_INLINE struct ob1_bin *ob1_match_bin(struct ob1_match *m, uint64_t key)
{
    struct ob1_bin *b = m->last;

    return ST_LIKELY(b->key == key) ? b : ob1_match_bin_slow(m, key);
}

/* Neither a receive nor a message waits there. */
ST_INLINE bool ob1_bin_is_empty(const struct ob1_bin *b)
{
    return b->posted.next == &b->posted && b->unexpected.next == &b->unexpected;
}

/* Queues a receive in its bin, in which no message waits. */
ST_INLINE void ob1_match_queue(struct ob1_match *m, struct ob1_bin *b, struct ob1_posted *p)
{
    p->key = b->key;
    p->seq = m->post_seq++;
    m->n_posted++;
    st_list_append(&b->posted, &p->node);
}

/* Posts a receive. An unexpected message that it matches is taken out and returned in *found, and p is not queued; else
 * *found is NULL. STRATA_ERR_NOMEM: nothing happened. */
ST_INLINE int ob1_match_post(struct ob1_match *m, struct ob1_posted *p, int src, int tag, struct ob1_unexp **found)
{
    uint64_t key = ob1_key(src, tag);
    struct ob1_bin *b;

    if (ST_UNLIKELY(!ob1_key_exact(key))) {
        struct ob1_unexp *other; /* so that *found need not be in memory */
        int rc = ob1_match_post_wild(m, p, key, &other);
        *found = other;
        return rc;
    }
    b = ob1_match_bin(m, key);
    if (ST_UNLIKELY(!b))
        return STRATA_ERR_NOMEM;
    if (ST_UNLIKELY(b->unexpected.next != &b->unexpected)) {
        *found = ST_CONTAINER(b->unexpected.next, struct ob1_unexp, node[OB1_EXACT]);
        ob1_match_remove(m, *found);
        return STRATA_OK;
    }
    *found = NULL;
    ob1_match_queue(m, b, p);
    return STRATA_OK;
}

/* A message (src, tag) arrives: the receive that it matches, taken out, or NULL. */
ST_INLINE struct ob1_posted *ob1_match_arrive(struct ob1_match *m, int src, int tag)
{
    uint64_t key = ob1_key(src, tag);
    struct ob1_bin *b = m->last;
    struct st_node *n;

    if (ST_UNLIKELY(b->key != key))
        b = ob1_match_lookup(m, key);
    if (ST_UNLIKELY(m->n_wild != 0))
        return ob1_match_arrive_wild(m, b, key);
    if (ST_UNLIKELY(!b))
        return NULL;
    n = b->posted.next;
    if (n == &b->posted)
        return NULL;
    ob1_unlink(n);
    m->n_posted--;
    return ST_CONTAINER(n, struct ob1_posted, node);
}

/* Queues a message that matched nothing. STRATA_ERR_NOMEM: it was not queued. */
ST_INLINE int ob1_match_store(struct ob1_match *m, struct ob1_unexp *u, int src, int tag)
{
    struct ob1_bin *b = ob1_match_bin(m, u->key = ob1_key(src, tag));

    if (ST_UNLIKELY(!b))
        return STRATA_ERR_NOMEM;
    st_list_append(&b->unexpected, &u->node[OB1_EXACT]);
    st_list_append(ST_UNLIKELY(tag < 0) ? &m->hidden : &m->arrived, &u->node[OB1_ANY]);
    m->n_unexpected++;
    if (ST_UNLIKELY(m->indexed))
        ob1_match_index(m, u);
    return STRATA_OK;
}

#endif
