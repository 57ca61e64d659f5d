/* Unexpected messages: the indexes for wildcards, search and removal. */
#include "match.h"

static uint64_t ob1_match_wild_key(int kind, uint64_t exact)
{
    return kind == OB1_BY_TAG ? ob1_key(-1, ob1_key_tag(exact)) : ob1_key(ob1_key_src(exact), -1);
}

static int ob1_match_append(struct ob1_match *m, struct ob1_unexp *u, int kind)
{
    struct ob1_bin *b = ob1_match_bin_slow(m, ob1_match_wild_key(kind, u->key));

    if (!b)
        return STRATA_ERR_NOMEM;
    st_list_append(&b->unexpected, &u->node[kind]);
    return STRATA_OK;
}

/* A node that points to itself unlinks harmlessly. */
static void ob1_match_stand_alone(struct ob1_unexp *u)
{
    st_list_init(&u->node[OB1_BY_TAG]);
    st_list_init(&u->node[OB1_BY_SOURCE]);
}

static void ob1_match_leave_indexes(struct ob1_unexp *u)
{
    ob1_unlink(&u->node[OB1_BY_TAG]);
    ob1_unlink(&u->node[OB1_BY_SOURCE]);
}

static void ob1_match_for_all(struct st_node *list, void (*fn)(struct ob1_unexp *u))
{
    for (struct st_node *n = list->next; n != list; n = n->next)
        fn(ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]));
}

/* Takes every message out of the indexes and forgets them; the next wildcard search builds them anew. */
static ST_COLD void ob1_match_drop_indexes(struct ob1_match *m)
{
    ob1_match_for_all(&m->arrived, ob1_match_leave_indexes);
    ob1_match_for_all(&m->hidden, ob1_match_leave_indexes);
    m->indexed = false;
}

void ob1_match_index(struct ob1_match *m, struct ob1_unexp *u)
{
    bool hidden = ob1_key_tag(u->key) < 0;

    ob1_match_stand_alone(u);
    if (ob1_match_append(m, u, OB1_BY_TAG) != STRATA_OK ||
        (!hidden && ob1_match_append(m, u, OB1_BY_SOURCE) != STRATA_OK))
        ob1_match_drop_indexes(m);
    ob1_match_lookup(m, u->key); /* the exact bin is the one that the next message will want */
}

static void ob1_match_index_list(struct ob1_match *m, struct st_node *list)
{
    for (struct st_node *n = list->next; n != list && m->indexed; n = n->next)
        ob1_match_index(m, ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]));
}

static ST_COLD int ob1_match_build_indexes(struct ob1_match *m)
{
    m->indexed = true;
    ob1_match_for_all(&m->arrived, ob1_match_stand_alone);
    ob1_match_for_all(&m->hidden, ob1_match_stand_alone);
    ob1_match_index_list(m, &m->arrived);
    ob1_match_index_list(m, &m->hidden);
    return m->indexed ? STRATA_OK : STRATA_ERR_NOMEM;
}

void ob1_match_remove(struct ob1_match *m, struct ob1_unexp *u)
{
    ob1_unlink(&u->node[OB1_EXACT]);
    ob1_unlink(&u->node[OB1_ANY]);
    m->n_unexpected--;
    if (m->indexed)
        ob1_match_leave_indexes(u);
}

int ob1_match_find(struct ob1_match *m, int src, int tag, bool take, struct ob1_unexp **found)
{
    struct st_node *head, *n;
    int kind = (src < 0 ? OB1_BY_TAG : 0) | (tag == -1 ? OB1_BY_SOURCE : 0);

    *found = NULL;
    if (m->n_unexpected == 0)
        return STRATA_OK;
    if (kind == OB1_ANY) {
        head = &m->arrived;
    } else {
        if (kind != OB1_EXACT && !m->indexed && ob1_match_build_indexes(m) != STRATA_OK)
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
    struct st_node *list = st_list_empty(&m->arrived) ? &m->hidden : &m->arrived;

    return st_list_empty(list) ? NULL : ST_CONTAINER(list->next, struct ob1_unexp, node[OB1_ANY]);
}
