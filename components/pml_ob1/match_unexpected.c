/* Unexpected messages: the indexes for wildcards, search and removal. */
#include "match.h"

static uint64_t wild_key(int kind, uint64_t exact)
{
    return kind == OB1_BY_TAG ? ob1_key(-1, ob1_key_tag(exact)) : ob1_key(ob1_key_src(exact), -1);
}

static int append(struct ob1_match *m, struct ob1_unexp *u, int kind)
{
    struct ob1_bin *b = ob1_match_bin_slow(m, wild_key(kind, u->key));

    if (!b)
        return STRATA_ERR_NOMEM;
    st_list_append(&b->unexpected, &u->node[kind]);
    return STRATA_OK;
}

/* Takes every message out of the indexes and forgets them; the next wildcard search builds them anew. */
static OB1_COLD void drop_indexes(struct ob1_match *m)
{
    for (struct st_node *n = m->arrived.next; n != &m->arrived; n = n->next) {
        struct ob1_unexp *u = ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]);
        ob1_unlink(&u->node[OB1_BY_TAG]);
        ob1_unlink(&u->node[OB1_BY_SOURCE]);
    }
    m->indexed = false;
}

void ob1_match_index(struct ob1_match *m, struct ob1_unexp *u)
{
    st_list_init(&u->node[OB1_BY_TAG]); /* a node that points to itself unlinks harmlessly */
    st_list_init(&u->node[OB1_BY_SOURCE]);
    if (append(m, u, OB1_BY_TAG) != STRATA_OK || append(m, u, OB1_BY_SOURCE) != STRATA_OK)
        drop_indexes(m);
    ob1_match_lookup(m, u->key); /* the exact bin is the one that the next message will want */
}

static OB1_COLD int build_indexes(struct ob1_match *m)
{
    m->indexed = true;
    for (struct st_node *n = m->arrived.next; n != &m->arrived; n = n->next) {
        struct ob1_unexp *u = ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]);
        st_list_init(&u->node[OB1_BY_TAG]);
        st_list_init(&u->node[OB1_BY_SOURCE]);
    }
    for (struct st_node *n = m->arrived.next; n != &m->arrived && m->indexed; n = n->next)
        ob1_match_index(m, ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]));
    return m->indexed ? STRATA_OK : STRATA_ERR_NOMEM;
}

void ob1_match_remove(struct ob1_match *m, struct ob1_unexp *u)
{
    ob1_unlink(&u->node[OB1_EXACT]);
    ob1_unlink(&u->node[OB1_ANY]);
    m->n_unexpected--;
    if (m->indexed) {
        ob1_unlink(&u->node[OB1_BY_TAG]);
        ob1_unlink(&u->node[OB1_BY_SOURCE]);
    }
}

int ob1_match_find(struct ob1_match *m, int src, int tag, bool take, struct ob1_unexp **found)
{
    struct st_node *head, *n;
    int kind = (src < 0 ? OB1_BY_TAG : 0) | (tag < 0 ? OB1_BY_SOURCE : 0);

    *found = NULL;
    if (m->n_unexpected == 0)
        return STRATA_OK;
    if (kind == OB1_ANY) {
        head = &m->arrived;
    } else {
        if (kind != OB1_EXACT && !m->indexed && build_indexes(m) != STRATA_OK)
            return STRATA_ERR_NOMEM;
        struct ob1_bin *b = ob1_match_lookup(m, ob1_key(src, tag));
        if (!b)
            return STRATA_OK;
        head = &b->unexpected;
    }
    n = head->next;
    if (n == head)
        return STRATA_OK;
    *found = ST_CONTAINER(n - kind, struct ob1_unexp, node[0]);
    if (take)
        ob1_match_remove(m, *found);
    return STRATA_OK;
}

struct ob1_unexp *ob1_match_any_unexpected(struct ob1_match *m)
{
    struct st_node *n = m->arrived.next;

    return n == &m->arrived ? NULL : ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]);
}
