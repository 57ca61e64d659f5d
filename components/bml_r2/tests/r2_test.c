/* bml_r2 over transports made up here: who is asked, who is chosen, how they are weighted, what is said of failures. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "bml_r2.h"
#include "support/world.h"
#include "support/run_suite.h"

struct fake {
    struct st_btl btl;
    struct st_component component;
    struct st_btl_endpoint ep;
    struct st_btl_facts to_rank_2; /* latency 0: as to everybody */
    int reach, connect;            /* what they return */
    int asked, connected;
};

static int fake_reach(struct st_btl *btl, int rank)
{
    struct fake *f = (struct fake *)btl;
    (void)rank;
    f->asked++;
    return f->reach;
}

static int fake_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct fake *f = (struct fake *)btl;
    if (f->connect != STRATA_OK)
        return f->connect;
    f->connected = 1;
    f->ep = (struct st_btl_endpoint){.btl = btl, .rank = rank};
    *out = &f->ep;
    return STRATA_OK;
}

static void fake_disconnect(struct st_btl_endpoint *ep)
{
    ((struct fake *)ep->btl)->connected--;
}

static void fake_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts)
{
    const struct fake *f = (const struct fake *)ep->btl;
    if (ep->rank == 2 && f->to_rank_2.latency_ns)
        *facts = f->to_rank_2;
}

static const struct st_btl_ops ops = {
    .reach = fake_reach, .connect = fake_connect, .disconnect = fake_disconnect, .facts = fake_facts};

static struct fake f[4];
static struct st_btl *btls[4];
static struct st_bml *bml;
static struct tw_world *world;
static strata_t *s;

static void add(int i, const char *name, int exclusivity, uint32_t latency, uint32_t bandwidth)
{
    f[i] = (struct fake){.component = {.name = name}};
    f[i].btl.ops = &ops;
    f[i].btl.component = &f[i].component;
    f[i].btl.exclusivity = exclusivity;
    f[i].btl.facts.latency_ns = latency;
    f[i].btl.facts.bandwidth_mbs = bandwidth;
    btls[i] = &f[i].btl;
}

static void setup(void)
{
    struct bml_r2_config config = {.max_paths = 2};
    world = tw_create(&(struct tw_options){.n = 3, .present = 1, .settings = "btl=self", .quiet = true});
    ck_assert_int_eq(tw_init(world, 0, &s, NULL, 0), STRATA_OK);
    add(0, "slow", 10, 900, 1000);
    add(1, "fast", 10, 100, 3000);
    add(2, "medium", 10, 500, 1000);
    add(3, "only_if_must", 1, 1, 9000);
    ck_assert_int_eq(bml_r2_make(s, &config, btls, 4, &bml), STRATA_OK);
}

static void teardown(void)
{
    bml->ops->close(bml);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(f[i].connected, 0);
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    tw_destroy(world);
}

START_TEST(fastest_first_and_weighted)
{
    struct st_bml_peer *peer, *again;
    ck_assert_ptr_null(bml->ops->lookup(bml, 1));
    ck_assert_int_eq(bml->ops->peer(bml, 1, &peer), STRATA_OK);
    ck_assert_uint_eq(peer->n_paths, 2);
    ck_assert_ptr_eq(peer->paths[0].ep, &f[1].ep);
    ck_assert_ptr_eq(peer->paths[1].ep, &f[2].ep);
    ck_assert_float_eq_tol(peer->paths[0].weight, 0.75f, 1e-6f);
    ck_assert_float_eq_tol(peer->paths[1].weight, 0.25f, 1e-6f);
    ck_assert_int_eq(bml->ops->peer(bml, 1, &again), STRATA_OK);
    ck_assert_ptr_eq(again, peer);
    ck_assert_ptr_eq(bml->ops->lookup(bml, 1), peer);
    ck_assert_int_eq(f[0].asked, 1); /* once per peer, not per message */
    ck_assert_int_eq(bml->ops->peer(bml, -1, &again), STRATA_ERR_RANK);
    ck_assert_ptr_null(bml->ops->lookup(bml, 1 << 30));
}
END_TEST

START_TEST(facts_are_the_endpoints)
{
    struct st_bml_peer *peer;
    f[1].to_rank_2 = (struct st_btl_facts){.latency_ns = 700, .bandwidth_mbs = 500}; /* its module says 100 and 3000 */
    ck_assert_int_eq(bml->ops->peer(bml, 2, &peer), STRATA_OK);
    ck_assert_ptr_eq(peer->paths[0].ep, &f[2].ep);
    ck_assert_ptr_eq(peer->paths[1].ep, &f[1].ep);
    ck_assert_uint_eq(st_btl_facts_of(peer->paths[0].ep).latency_ns, 500); /* the module's: nothing else is known */
    ck_assert_uint_eq(st_btl_facts_of(peer->paths[1].ep).latency_ns, 700);
    ck_assert_float_eq_tol(peer->paths[1].weight, 500.f / 1500.f, 1e-6f);
}
END_TEST

START_TEST(less_exclusive_only_when_nothing_else)
{
    struct st_bml_peer *peer;
    for (int i = 0; i < 3; i++)
        f[i].reach = STRATA_ERR_UNREACHABLE;
    ck_assert_int_eq(bml->ops->peer(bml, 2, &peer), STRATA_OK);
    ck_assert_uint_eq(peer->n_paths, 1);
    ck_assert_ptr_eq(peer->paths[0].ep, &f[3].ep);
}
END_TEST

START_TEST(one_that_does_not_connect_is_left_out)
{
    struct st_bml_peer *peer;
    f[1].connect = STRATA_ERR_SYSTEM;
    ck_assert_int_eq(bml->ops->peer(bml, 2, &peer), STRATA_OK);
    ck_assert_uint_eq(peer->n_paths, 2);
    ck_assert_ptr_eq(peer->paths[0].ep, &f[2].ep);
    ck_assert_ptr_eq(peer->paths[1].ep, &f[0].ep);
}
END_TEST

START_TEST(less_exclusive_when_nothing_else_connects)
{
    struct st_bml_peer *peer;
    int lines = tw_log_count(world, ST_LOG_ERROR);
    for (int i = 0; i < 3; i++)
        f[i].connect = STRATA_ERR_SYSTEM;
    ck_assert_int_eq(bml->ops->peer(bml, 2, &peer), STRATA_OK);
    ck_assert_uint_eq(peer->n_paths, 1);
    ck_assert_ptr_eq(peer->paths[0].ep, &f[3].ep);
    f[3].connect = STRATA_ERR_SYSTEM;
    ck_assert_int_eq(bml->ops->peer(bml, 1, &peer), STRATA_ERR_UNREACHABLE);
    ck_assert_int_eq(tw_log_count(world, ST_LOG_ERROR), lines + 1);
}
END_TEST

START_TEST(unreachable_is_one_line)
{
    struct st_bml_peer *peer;
    int lines = tw_log_count(world, ST_LOG_ERROR);
    for (int i = 0; i < 4; i++)
        f[i].reach = STRATA_ERR_UNREACHABLE;
    ck_assert_int_eq(bml->ops->peer(bml, 2, &peer), STRATA_ERR_UNREACHABLE);
    ck_assert_int_eq(tw_log_count(world, ST_LOG_ERROR), lines + 1);
    f[0].reach = STRATA_OK; /* not remembered: it may come up later */
    ck_assert_int_eq(bml->ops->peer(bml, 2, &peer), STRATA_OK);
}
END_TEST

START_TEST(paths_fail_one_by_one)
{
    struct st_bml_peer *peer;
    ck_assert_int_eq(bml->ops->peer(bml, 1, &peer), STRATA_OK);
    ck_assert_int_eq(bml->ops->path_failed(bml, peer, &f[1].ep), STRATA_OK);
    ck_assert_ptr_eq(peer->paths[1].ep, &f[2].ep); /* places do not change */
    ck_assert_float_eq_tol(peer->paths[0].weight, 0.0f, 1e-6f);
    ck_assert_float_eq_tol(peer->paths[1].weight, 1.0f, 1e-6f);
    ck_assert_int_eq(f[1].connected, 1);
    f[1].connect = STRATA_ERR_AGAIN;
    ck_assert_int_eq(bml->ops->path_retry(bml, peer, 0), STRATA_ERR_AGAIN);
    ck_assert_ptr_eq(peer->paths[0].ep, &f[1].ep);
    ck_assert_int_eq(bml->ops->path_failed(bml, peer, &f[2].ep), STRATA_ERR_PEER);
    ck_assert_int_eq(bml->ops->peer(bml, 1, &peer), STRATA_ERR_PEER);
}
END_TEST

START_TEST(a_path_works_again)
{
    struct st_bml_peer *peer;
    ck_assert_int_eq(bml->ops->peer(bml, 1, &peer), STRATA_OK);
    float before = peer->paths[0].weight;
    ck_assert_int_eq(bml->ops->path_failed(bml, peer, &f[1].ep), STRATA_OK);
    ck_assert_int_eq(bml->ops->path_retry(bml, peer, 0), STRATA_OK);
    ck_assert_float_eq_tol(peer->paths[0].weight, 0.0f, 1e-6f);
    bml->ops->path_works(bml, peer, 0);
    ck_assert_float_eq_tol(peer->paths[0].weight, before, 1e-6f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bml_r2");
    TCase *tc = tcase_create("r2");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, fastest_first_and_weighted);
    tcase_add_test(tc, facts_are_the_endpoints);
    tcase_add_test(tc, less_exclusive_only_when_nothing_else);
    tcase_add_test(tc, one_that_does_not_connect_is_left_out);
    tcase_add_test(tc, less_exclusive_when_nothing_else_connects);
    tcase_add_test(tc, unreachable_is_one_line);
    tcase_add_test(tc, paths_fail_one_by_one);
    tcase_add_test(tc, a_path_works_again);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
