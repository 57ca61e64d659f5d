/* Posted receives with wildcards, and taking posted receives back. */
#include <limits.h>
#include "match.h"

static int ob1_match_kind_of(uint64_t key)
{
    return (ob1_key_src(key) < 0 ? OB1_BY_TAG : 0) | (ob1_key_tag(key) == -1 ? OB1_BY_SOURCE : 0);
}
_Static_assert((OB1_BY_TAG | OB1_BY_SOURCE) == OB1_ANY, "kind_of combines the two wildcards");

/* The head of a bin's posted receives when it is older than `best`. */
static struct ob1_posted *ob1_match_older(const struct ob1_bin *b, struct ob1_posted *best)
{
    struct ob1_posted *p;

    if (!b || b->posted.next == &b->posted)
        return best;
    p = ST_CONTAINER(b->posted.next, struct ob1_posted, node);
    return !best || p->seq < best->seq ? p : best;
}

void ob1_match_cancel(struct ob1_match *m, struct ob1_posted *p)
{
    int kind = ob1_match_kind_of(p->key);

    ob1_unlink(&p->node);
    m->n_posted--;
    if (kind != OB1_EXACT) {
        m->wild[kind]--;
        m->n_wild--;
    }
}

struct ob1_posted *ob1_match_arrive_wild(struct ob1_match *m, struct ob1_bin *exact, uint64_t key)
{
    int src = ob1_key_src(key), tag = ob1_key_tag(key);
    struct ob1_posted *best = ob1_match_older(exact, NULL);

    if (m->wild[OB1_BY_TAG])
        best = ob1_match_older(ob1_match_lookup(m, ob1_key(-1, tag)), best);
    if (m->wild[OB1_BY_SOURCE] && tag >= 0) /* any tag: but no hidden one */
        best = ob1_match_older(ob1_match_lookup(m, ob1_key(src, -1)), best);
    if (m->wild[OB1_ANY] && tag >= 0)
        best = ob1_match_older(ob1_match_lookup(m, ob1_key(-1, -1)), best);
    if (best)
        ob1_match_cancel(m, best);
    return best;
}

ST_COLD int ob1_match_post_wild(struct ob1_match *m, struct ob1_posted *p, uint64_t key, struct ob1_unexp **found)
{
    struct ob1_bin *b;
    int kind = ob1_match_kind_of(key), rc = STRATA_OK;

    *found = NULL;
    if (m->n_unexpected != 0)
        rc = ob1_match_find(m, ob1_key_src(key), ob1_key_tag(key), true, found);
    if (rc != STRATA_OK || *found)
        return rc;
    b = ob1_match_bin_slow(m, key);
    if (!b)
        return STRATA_ERR_NOMEM;
    m->wild[kind]++;
    m->n_wild++;
    ob1_match_queue(m, b, p);
    return STRATA_OK;
}

struct ob1_posted *ob1_match_any_posted(struct ob1_match *m, int src, int below)
{
    for (uint32_t i = 0; m->table && m->n_posted != 0 && i <= m->mask; i++) {
        for (struct ob1_bin *b = m->table[i]; b; b = b->next) {
            int tag = ob1_key_tag(b->key);
            if (b->posted.next != &b->posted && (src == -1 || ob1_key_src(b->key) == src) &&
                (below == INT_MAX || (tag != -1 && tag < below)))
                return ST_CONTAINER(b->posted.next, struct ob1_posted, node);
        }
    }
    return NULL;
}
