/* Revoked tags (st_pml_ops.revoke): every send to a context that has revoked them completes, by any protocol, whether
 * the message came before, comes later, or comes when the context was freed; receives end; other tags go on. */
#include <check.h>
#include <limits.h>
#include <strata/sdk/pml.h>
#include "support/run_suite.h"
#include "support/world.h"

enum { LONGEST = 3 << 20, BELOW = INT_MIN + 100, CONTEXT = 9 };

static const size_t lengths[] = {0, 8, 1000, 5000, 40000, 300000, LONGEST};
enum { N = sizeof(lengths) / sizeof(*lengths) };

static char buffer[LONGEST];

/* All lengths, twice. */
static void start_sends(strata_comm_t *c, strata_request_t **q)
{
    for (int i = 0; i < 2 * N; i++) {
        struct st_pml_send a = {
            .buf = buffer, .len = lengths[i % N], .dst = 1, .tag = INT_MIN + i, .mode = STRATA_STANDARD};
        CHECK_OK(c->ops->isend(c, &a, &q[i]));
    }
}

static void revoke(strata_comm_t *c)
{
    st_worker_lock(c->worker);
    c->ops->revoke(c, BELOW);
    st_worker_unlock(c->worker);
}

static strata_comm_t *context(struct tw_rank *r)
{
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = CONTEXT, .rank = r->rank, .n_ranks = r->n};
    strata_comm_t *c;
    CHECK_OK(strata_comm_create(r->s, &spec, &c));
    return c;
}

static void meet(struct tw_rank *r)
{
    char byte = 0;
    CHECK_OK(strata_send(r->comm, &byte, 1, !r->rank, 1));
    CHECK_OK(strata_recv(r->comm, &byte, 1, !r->rank, 1, NULL));
}

/* Messages with other tags still go. */
static void others_go(struct tw_rank *r, strata_comm_t *c)
{
    int x = r->rank == 0 ? 7 : 0;
    if (r->rank == 0)
        CHECK_OK(strata_send(c, &x, sizeof(x), 1, 3));
    else
        CHECK_OK(strata_recv(c, &x, sizeof(x), 0, 3, NULL));
    CHECK_EQ(x, 7);
}

enum when { BEFORE, AFTER, FREED };

static void discarded(struct tw_rank *r, enum when when)
{
    strata_comm_t *c = context(r);
    strata_request_t *q[2 * N];
    if (r->rank == 0) {
        if (when != BEFORE)
            meet(r);
        start_sends(c, q);
        if (when == BEFORE)
            meet(r);
        CHECK_OK(strata_waitall(2 * N, q, NULL));
        meet(r);
    } else {
        if (when == BEFORE)
            meet(r); /* short ones are here */
        revoke(c);
        if (when == FREED)
            CHECK_OK(strata_comm_free(c));
        if (when != BEFORE)
            meet(r);
        meet(r);
    }
    if (when == FREED) { /* the id is used again: nothing of the old one is left */
        if (r->rank == 0)
            CHECK_OK(strata_comm_free(c));
        c = context(r);
    }
    others_go(r, c);
    tw_quiesce(r);
    CHECK_OK(strata_comm_free(c));
}

static void before(struct tw_rank *r)
{
    discarded(r, BEFORE);
}

static void after(struct tw_rank *r)
{
    discarded(r, AFTER);
}

static void freed(struct tw_rank *r)
{
    discarded(r, FREED);
}

/* Posted receives end, those of other tags do not; matched ones are finished. */
static void receives(struct tw_rank *r)
{
    strata_comm_t *c = context(r);
    strata_request_t *q[3], *plain;
    strata_status_t status;
    static char in[3][LONGEST], small;
    if (r->rank == 1) {
        CHECK_OK(strata_irecv(c, &small, 1, 0, 4, &plain));
        for (int i = 0; i < 3; i++) {
            struct st_pml_recv a = {.buf = in[i], .len = LONGEST, .src = 0, .tag = BELOW - 1 + i};
            CHECK_OK(c->ops->irecv(c, &a, &q[i]));
        }
        revoke(c);
        CHECK_RC(strata_wait(&q[0], &status), STRATA_ERR_CANCELLED);
        meet(r);
        CHECK_OK(strata_wait(&q[1], &status)); /* at the limit and above it */
        CHECK_OK(strata_wait(&q[2], &status));
        CHECK_OK(strata_wait(&plain, &status));
    } else {
        meet(r);
        for (int i = 1; i < 3; i++) {
            struct st_pml_send a = {.buf = buffer, .len = LONGEST, .dst = 1, .tag = BELOW - 1 + i};
            CHECK_OK(c->ops->isend(c, &a, &q[i]));
            CHECK_OK(strata_wait(&q[i], &status));
        }
        CHECK_OK(strata_send(c, buffer, 1, 1, 4));
    }
    tw_quiesce(r);
    CHECK_OK(strata_comm_free(c));
}

static const tw_body_fn bodies[] = {before, after, freed, receives};
static const char *const settings[] = {"btl=sm,self", "btl=tcp,self"};

START_TEST(revoked)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i / 4]}, bodies[_i % 4], NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_revoke");
    TCase *tc = tcase_create("revoke");

    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, revoked, 0, (int)(4 * sizeof(settings) / sizeof(settings[0])));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
