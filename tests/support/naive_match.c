/* See naive_match.h. */
#include "support/naive_match.h"

#include <stdlib.h>

struct item {
    struct item *next;
    int src, tag;
    int64_t id;
};

struct queue {
    struct item *first, **last;
    uint64_t n;
};

struct naive_match {
    struct queue posted, unexpected;
};

struct naive_match *naive_create(void)
{
    struct naive_match *m = calloc(1, sizeof *m);
    if (m) {
        m->posted.last = &m->posted.first;
        m->unexpected.last = &m->unexpected.first;
    }
    return m;
}

static void clear(struct queue *q)
{
    while (q->first) {
        struct item *i = q->first;
        q->first = i->next;
        free(i);
    }
}

void naive_destroy(struct naive_match *m)
{
    clear(&m->posted);
    clear(&m->unexpected);
    free(m);
}

static void append(struct queue *q, int src, int tag, int64_t id)
{
    struct item *i = malloc(sizeof *i);
    if (!i)
        abort();
    *i = (struct item){NULL, src, tag, id};
    *q->last = i;
    q->last = &i->next;
    q->n++;
}

static int64_t take(struct queue *q, struct item **at)
{
    struct item *i = *at;
    int64_t id = i->id;
    *at = i->next;
    if (!i->next)
        q->last = at;
    q->n--;
    free(i);
    return id;
}

static int agree(int want, int have)
{
    return want == -1 || want == have;
}

/* Tags below -1 are hidden: the wildcard does not match them. */
static int tags_agree(int wanted, int tag)
{
    return wanted == tag || (wanted == -1 && tag >= 0);
}

int64_t naive_post(struct naive_match *m, int src, int tag, int64_t id)
{
    int64_t found = naive_probe(m, src, tag, 1);
    if (found < 0)
        append(&m->posted, src, tag, id);
    return found;
}

int64_t naive_arrive(struct naive_match *m, int src, int tag, int64_t id)
{
    for (struct item **at = &m->posted.first; *at; at = &(*at)->next)
        if (agree((*at)->src, src) && tags_agree((*at)->tag, tag))
            return take(&m->posted, at);
    append(&m->unexpected, src, tag, id);
    return -1;
}

int naive_cancel(struct naive_match *m, int64_t id)
{
    for (struct item **at = &m->posted.first; *at; at = &(*at)->next)
        if ((*at)->id == id) {
            take(&m->posted, at);
            return 1;
        }
    return 0;
}

int64_t naive_probe(struct naive_match *m, int src, int tag, int take_it)
{
    for (struct item **at = &m->unexpected.first; *at; at = &(*at)->next)
        if (agree(src, (*at)->src) && tags_agree(tag, (*at)->tag))
            return take_it ? take(&m->unexpected, at) : (*at)->id;
    return -1;
}

uint64_t naive_posted(const struct naive_match *m)
{
    return m->posted.n;
}

uint64_t naive_unexpected(const struct naive_match *m)
{
    return m->unexpected.n;
}
