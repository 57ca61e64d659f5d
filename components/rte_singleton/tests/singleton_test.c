/* rte_singleton: rank 0 of 1, own keys. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/rte.h>
#include "support/run_suite.h"

extern const struct st_component st_component_rte_singleton;

static struct st_rte *open_one(void)
{
    const struct st_component *c = &st_component_rte_singleton;
    const struct st_rte_component_ops *ops = c->ops;
    struct st_rte *rte = NULL;
    ck_assert_int_eq(ops->open(NULL, c, NULL, NULL, &rte), STRATA_OK);
    ck_assert_ptr_nonnull(rte);
    return rte;
}

START_TEST(identity)
{
    struct st_rte *a = open_one(), *b = open_one();
    ck_assert_int_eq(a->rank, 0);
    ck_assert_int_eq(a->size, 1);
    ck_assert_str_ne(a->job_id, b->job_id);
    ck_assert_uint_gt(strlen(a->host), 0);
    int n = 0;
    const int *local = a->ops->local_ranks(a, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(local[0], 0);
    ck_assert(a->ops->is_local(a, 0));
    ck_assert(!a->ops->is_local(a, 1));
    ck_assert_str_eq(a->ops->host_of(a, 0), a->host);
    ck_assert_str_eq(a->ops->host_of(a, 7), "?");
    ck_assert_int_eq(a->ops->fence(a), STRATA_OK);
    a->ops->close(a);
    b->ops->close(b);
}
END_TEST

/* A rank of an embedder must not become a job of its own because rte_host is missing. */
START_TEST(not_for_an_embedder)
{
    const struct st_rte_component_ops *ops = st_component_rte_singleton.ops;
    strata_host_t host = {.size = sizeof(host), .rank = 2};
    struct st_rte *rte = NULL;
    ck_assert_int_eq(ops->open(NULL, &st_component_rte_singleton, NULL, &host, &rte), STRATA_ERR_UNSUPPORTED);
    ck_assert_ptr_null(rte);
}
END_TEST

START_TEST(own_keys)
{
    struct st_rte *rte = open_one();
    void *blob = NULL;
    size_t length = 0;
    ck_assert_int_eq(rte->ops->get(rte, 0, "k", &blob, &length), STRATA_ERR_NOT_FOUND);
    ck_assert_int_eq(rte->ops->get(rte, 1, "k", &blob, &length), STRATA_ERR_RANK);
    ck_assert_ptr_null(blob);
    ck_assert_int_eq(rte->ops->put(rte, "k", "one", 3), STRATA_OK);
    ck_assert_int_eq(rte->ops->put(rte, "empty", NULL, 0), STRATA_OK);
    ck_assert_int_eq(rte->ops->put(rte, "k", "second", 6), STRATA_OK);
    ck_assert_int_eq(rte->ops->get(rte, 0, "k", &blob, &length), STRATA_OK);
    ck_assert_uint_eq(length, 6);
    ck_assert_mem_eq(blob, "second", 6);
    free(blob);
    ck_assert_int_eq(rte->ops->get(rte, 0, "empty", &blob, &length), STRATA_OK);
    ck_assert_uint_eq(length, 0);
    free(blob);
    rte->ops->close(rte);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rte_singleton");
    TCase *tc = tcase_create("singleton");
    tcase_add_test(tc, identity);
    tcase_add_test(tc, not_for_an_embedder);
    tcase_add_test(tc, own_keys);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
