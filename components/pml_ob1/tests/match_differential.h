/* Matching against a naive list: the same random posts, arrivals, cancels and probes must find the same partners.
 * MATCH_SHARE: one in so many of the operations of a load are done, in the quick test fewer than in the long one;
 * MATCH_FULL: the same in the full form; MATCH_SEED: of the first load. */
#ifndef MATCH_DIFFERENTIAL_H
#define MATCH_DIFFERENTIAL_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "match.h"
#include "support/form.h"
#include "support/naive_match.h"
#include "support/random.h"
#include "support/world.h"
#include "support/run_suite.h"

struct post {
    struct ob1_posted p;
    int64_t id;
    size_t at; /* in live_posts */
};

struct message {
    struct ob1_unexp u;
    int64_t id;
};

struct load {
    const char *name;
    uint32_t sources, tags;
    uint32_t wild_source, wild_tag; /* percent of posts and probes */
    uint32_t skew;                  /* percent of operations that use key (0, 0) */
    uint32_t depth;                 /* about how long queues become */
    uint32_t operations;
};

static const struct load loads[] = {
    {"few keys", 2, 3, 20, 20, 0, 300, 1000000},
    {"one key", 1, 1, 0, 0, 100, 300, 300000},
    {"many keys", 300, 100, 1, 1, 0, 1000, 300000},
    {"many keys, no wildcard", 500, 20, 0, 0, 10, 1000, 300000},
    {"mostly wildcards", 8, 8, 60, 60, 0, 200, 1000000},
    {"any source", 64, 4, 90, 0, 0, 300, 1000000},
    {"any tag", 4, 64, 0, 90, 0, 300, 300000},
    {"skewed, mixed", 100, 100, 10, 10, 50, 500, 300000},
    {"a few wildcards now and then", 10, 10, 1, 0, 0, 100, 1000000},
};

struct state {
    struct ob1_match m;
    struct naive_match *naive;
    const struct load *l;
    struct rnd rnd;
    struct post **live; /* posted receives still queued, in no order, for cancel */
    size_t n_live, room;
    int64_t next_id;
    uint64_t matched, probed, cancelled;
};

static void draw_key(struct state *t, bool wild, int *src, int *tag)
{
    const struct load *l = t->l;
    bool skewed = rnd_below(&t->rnd, 100) < l->skew;
    *src = skewed ? 0 : (int)rnd_below(&t->rnd, l->sources);
    *tag = skewed ? 0 : (int)rnd_below(&t->rnd, l->tags);
    if (*tag % 5 == 4)
        *tag = -*tag; /* hidden */
    if (!wild)
        return;
    if (rnd_below(&t->rnd, 100) < l->wild_source)
        *src = -1;
    if (*tag >= 0 && rnd_below(&t->rnd, 100) < l->wild_tag)
        *tag = -1;
}

static void forget(struct state *t, struct post *p)
{
    t->live[p->at] = t->live[--t->n_live];
    t->live[p->at]->at = p->at;
    free(p);
}

static void do_post(struct state *t)
{
    int src, tag;
    struct post *p = malloc(sizeof *p);
    struct ob1_unexp *found = NULL;
    CHECK(p);
    draw_key(t, true, &src, &tag);
    p->id = t->next_id++;
    int64_t want = naive_post(t->naive, src, tag, p->id);
    CHECK_OK(ob1_match_post(&t->m, &p->p, src, tag, &found));
    int64_t got = found ? ST_CONTAINER(found, struct message, u)->id : -1;
    CHECK_MSG(got == want, "%s: receive %lld (%d, %d) met %lld, not %lld", t->l->name, (long long)p->id, src, tag,
              (long long)got, (long long)want);
    if (found) {
        t->matched++;
        free(ST_CONTAINER(found, struct message, u));
        free(p);
        return;
    }
    if (t->n_live == t->room) {
        t->room = t->room ? 2 * t->room : 256;
        t->live = realloc(t->live, t->room * sizeof *t->live);
        CHECK(t->live);
    }
    p->at = t->n_live;
    t->live[t->n_live++] = p;
}

static void do_arrive(struct state *t)
{
    int src, tag;
    int64_t id = t->next_id++;
    draw_key(t, false, &src, &tag);
    int64_t want = naive_arrive(t->naive, src, tag, id);
    struct ob1_posted *p = ob1_match_arrive(&t->m, src, tag);
    int64_t got = p ? ST_CONTAINER(p, struct post, p)->id : -1;
    CHECK_MSG(got == want, "%s: message %lld (%d, %d) met %lld, not %lld", t->l->name, (long long)id, src, tag,
              (long long)got, (long long)want);
    if (p) {
        t->matched++;
        forget(t, ST_CONTAINER(p, struct post, p));
        return;
    }
    struct message *u = malloc(sizeof *u);
    CHECK(u);
    u->id = id;
    CHECK_OK(ob1_match_store(&t->m, &u->u, src, tag));
}

static void do_cancel(struct state *t)
{
    if (!t->n_live)
        return;
    struct post *p = t->live[rnd_below(&t->rnd, (uint32_t)t->n_live)];
    CHECK_EQ(naive_cancel(t->naive, p->id), 1);
    ob1_match_cancel(&t->m, &p->p);
    forget(t, p);
    t->cancelled++;
}

static void do_probe(struct state *t, bool drain)
{
    int src = -1, tag = -1, take = drain || rnd_below(&t->rnd, 3) == 0;
    struct ob1_unexp *found = NULL;
    if (!drain)
        draw_key(t, true, &src, &tag);
    int64_t want = naive_probe(t->naive, src, tag, take);
    CHECK_OK(ob1_match_find(&t->m, src, tag, take, &found));
    int64_t got = found ? ST_CONTAINER(found, struct message, u)->id : -1;
    CHECK_MSG(got == want, "%s: a probe (%d, %d) found %lld, not %lld", t->l->name, src, tag, (long long)got,
              (long long)want);
    t->probed += found != NULL;
    if (found && take)
        free(ST_CONTAINER(found, struct message, u));
}

/* Posts or arrivals in front, changing slowly, so that both queues grow to the load's depth and empty again. */
static void step(struct state *t)
{
    uint32_t posts = naive_posted(t->naive) > t->l->depth ? 20 : naive_unexpected(t->naive) > t->l->depth ? 80 : 50;
    uint32_t phase = (uint32_t)(t->next_id / (4 * (int64_t)t->l->depth)) % 3;
    if (posts == 50)
        posts = phase == 0 ? 70 : phase == 1 ? 30 : 50;
    uint32_t dice = rnd_below(&t->rnd, 1000);
    /* With many keys little matches: what is too long is also cut by cancels and by matched probes. */
    if (dice < 30 || (dice < 500 && naive_posted(t->naive) > 2 * t->l->depth))
        do_cancel(t);
    else if (dice < 120 || (dice > 500 && naive_unexpected(t->naive) > 2 * t->l->depth))
        do_probe(t, naive_unexpected(t->naive) > 2 * t->l->depth);
    else if (rnd_below(&t->rnd, 100) < posts)
        do_post(t);
    else
        do_arrive(t);
    CHECK(t->m.n_posted == naive_posted(t->naive) && t->m.n_unexpected == naive_unexpected(t->naive));
}

START_TEST(same_as_a_list)
{
    struct state t = {.l = &loads[_i], .naive = naive_create(), .rnd = {(uint64_t)_i + MATCH_SEED}};
    uint32_t n = t.l->operations / (uint32_t)MATCH_SHARE;
    CHECK_OK(ob1_match_init(&t.m));
    for (uint32_t i = 0; i < n; i++)
        step(&t);
    printf("%s: %u operations, %llu matched, %llu probed, %llu cancelled\n", t.l->name, n,
           (unsigned long long)t.matched, (unsigned long long)t.probed, (unsigned long long)t.cancelled);
    CHECK(t.probed > 100 && t.cancelled > 100 && t.matched > (t.l->sources * t.l->tags > 1000 ? n / 10000 : n / 10));
    struct ob1_unexp *u;
    while ((u = ob1_match_any_unexpected(&t.m))) {
        ob1_match_remove(&t.m, u);
        free(ST_CONTAINER(u, struct message, u));
    }
    while (t.n_live) {
        ob1_match_cancel(&t.m, &t.live[0]->p);
        forget(&t, t.live[0]);
    }
    CHECK(t.m.n_posted == 0 && t.m.n_unexpected == 0);
    ob1_match_destroy(&t.m);
    naive_destroy(t.naive);
    free(t.live);
}
END_TEST

int main(void)
{
    uint32_t operations = 0;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        operations += loads[i].operations;
    test_form_print(MATCH_SEED, operations / MATCH_SHARE, operations / MATCH_FULL, "operations");
    Suite *s = suite_create("match_differential");
    TCase *tc = tcase_create("random");
    tcase_set_timeout(tc, 1800);
    tcase_add_loop_test(tc, same_as_a_list, 0, (int)(sizeof loads / sizeof loads[0]));
    suite_add_tcase(s, tc);
    return run_suite(s);
}

#endif
