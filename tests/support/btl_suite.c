/* Set-up of a BTL under test; see btl_suite.h. */
#include "support/btl_suite.h"
#include "support/let_run.h"

struct job {
    const struct btl_case *c;
    const char *name;
};

int btl_poll(struct btl_under_test *u)
{
    /* The worker polls a module once it has a peer there. */
    int n = strata_progress(u->r->s);
    CHECK(n >= 0);
    for (size_t i = 0; i < u->r->s->n_btls; i++)
        if (u->r->s->btls[i]->ops->progress)
            n += u->r->s->btls[i]->ops->progress(u->r->s->btls[i]);
    if (n == 0)
        let_run();
    return n;
}

void btl_send_all(struct btl_under_test *u, int rank, const void *hdr, uint32_t hdr_len, const void *data, uint32_t len)
{
    int rc;
    while ((rc = u->t->ops->send(u->ep[rank], ST_AM_TEST, hdr, hdr_len, data, len)) == STRATA_ERR_AGAIN)
        btl_poll(u);
    CHECK_OK(rc);
}

void btl_handler(struct btl_under_test *u, st_deliver_fn fn, void *arg)
{
    /* Every module of the component: rails deliver on their own. */
    for (size_t i = 0; i < u->r->s->n_btls; i++) {
        u->r->s->btls[i]->am[ST_AM_TEST].fn = fn;
        u->r->s->btls[i]->am[ST_AM_TEST].arg = arg;
    }
    tw_barrier(u->r);
}

static int poll_all(void *arg)
{
    return btl_poll(arg);
}

void btl_meet(struct btl_under_test *u)
{
    tw_quiesce_with(u->r, poll_all, u);
}

void btl_connect(struct btl_under_test *u, int rank)
{
    struct st_btl_endpoint **ep = &u->ep[rank];
    CHECK_OK(u->t->ops->reach(u->t, rank));
    CHECK_OK(u->t->ops->connect(u->t, rank, ep));
    CHECK(*ep && (*ep)->btl == u->t && (*ep)->rank == rank);
    /* An endpoint that was there before may be crowded or full, which no module is. */
    CHECK(((*ep)->caps & ~(u->t->caps | ST_BTL_CROWDED | ST_BTL_FULL)) == 0);
}

static void body(struct tw_rank *r)
{
    struct job *j = r->arg;
    struct btl_under_test u = {.r = r};
    for (size_t i = 0; i < r->s->n_btls && !u.t; i++)
        if (!strcmp(r->s->btls[i]->component->name, j->name))
            u.t = r->s->btls[i];
    CHECK_MSG(u.t, "no module of btl_%s is open", j->name);
    CHECK(u.t->eager_limit <= u.t->max_send && u.t->pipeline_send <= u.t->max_send);
    u.peer = r->n == 1 ? 0 : 1 - r->rank;
    for (int p = 0; p < r->n; p++) {
        if (j->c->connects || (p == r->rank && r->n > 1))
            continue;
        btl_connect(&u, p);
    }
    btl_meet(&u); /* who is still connecting may need us */
    j->c->body(&u);
    btl_meet(&u);
    for (int p = 0; p < r->n; p++)
        if (u.ep[p])
            u.t->ops->disconnect(u.ep[p]);
    btl_meet(&u); /* handlers live on this stack until here */
    tw_barrier(r);
}

void btl_case_run(const struct btl_case *c, const char *name, const char *settings, bool only_self)
{
    struct job j = {c, name};
    tw_run(&(struct tw_options){.n = only_self ? 1 : c->ranks, .settings = settings}, body, &j);
}

void btl_case_join(const struct btl_case *c, const char *name, struct tw_rank *r)
{
    struct job j = {c, name};
    CHECK(r->n == c->ranks || r->n == 1);
    r->arg = &j;
    body(r);
}

const struct btl_case *btl_case_at(size_t i)
{
    const struct btl_case *const groups[] = {btl_am_cases, btl_rdma_cases, btl_life_cases, btl_attribute_cases,
                                             btl_capability_cases};
    const size_t sizes[] = {n_btl_am_cases, n_btl_rdma_cases, n_btl_life_cases, n_btl_attribute_cases,
                            n_btl_capability_cases};

    for (size_t g = 0; g < sizeof groups / sizeof *groups; i -= sizes[g++])
        if (i < sizes[g])
            return &groups[g][i];
    return NULL;
}
