/* rte_host over a small embedder: forwarding, defaults, constant-time open of a large world. */
#include <check.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/rte.h>
#include "support/run_suite.h"

extern const struct st_component st_component_rte_host;

struct embedder {
    char key[64], blob[64];
    size_t length;
    int fences, aborted, asked_local;
};

static int put(void *user, const char *key, const void *blob, size_t length)
{
    struct embedder *e = user;
    strcpy(e->key, key);
    memcpy(e->blob, blob, length);
    e->length = length;
    return STRATA_OK;
}

static int get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    struct embedder *e = user;
    if (rank != 3 || strcmp(key, e->key) != 0)
        return STRATA_ERR_NOT_FOUND;
    *blob = malloc(e->length);
    memcpy(*blob, e->blob, e->length);
    *length = e->length;
    return STRATA_OK;
}

static int fence(void *user)
{
    ((struct embedder *)user)->fences++;
    return STRATA_OK;
}

static void on_abort(void *user, int status, const char *reason)
{
    (void)reason;
    ((struct embedder *)user)->aborted = status;
}

static int every_third(void *user, int rank)
{
    ((struct embedder *)user)->asked_local++;
    return rank % 3 == 0;
}

static const int listed[] = {1, 4, 9};
static const int *list_ranks(void *user, int *n)
{
    (void)user;
    *n = 3;
    return listed;
}

static const char *name_of(void *user, int rank)
{
    (void)user;
    return rank == 2 ? "node2" : NULL;
}

static strata_host_t table(struct embedder *e, int rank, int n)
{
    return (strata_host_t){.size = sizeof(strata_host_t),
                           .user = e,
                           .rank = rank,
                           .n_ranks = n,
                           .job_id = "job",
                           .host_name = "here",
                           .put = put,
                           .get = get,
                           .fence = fence};
}

static struct st_rte *open_on(const strata_host_t *h)
{
    const struct st_component *c = &st_component_rte_host;
    const struct st_rte_component_ops *ops = c->ops;
    struct st_rte *rte = NULL;
    ck_assert_int_eq(ops->open(NULL, c, NULL, h, &rte), STRATA_OK);
    return rte;
}

START_TEST(forwards)
{
    struct embedder e = {0};
    strata_host_t h = table(&e, 3, 8);
    h.abort = on_abort;
    h.host_of = name_of;
    struct st_rte *rte = open_on(&h);
    ck_assert_int_eq(rte->rank, 3);
    ck_assert_int_eq(rte->size, 8);
    ck_assert_str_eq(rte->job_id, "job");
    ck_assert_str_eq(rte->host, "here");
    void *blob = NULL;
    size_t length = 0;
    ck_assert_int_eq(rte->ops->put(rte, "card", "abc", 3), STRATA_OK);
    ck_assert_int_eq(rte->ops->get(rte, 3, "card", &blob, &length), STRATA_OK);
    ck_assert_uint_eq(length, 3);
    ck_assert_mem_eq(blob, "abc", 3);
    free(blob);
    ck_assert_int_eq(rte->ops->get(rte, 3, "other", &blob, &length), STRATA_ERR_NOT_FOUND);
    ck_assert_int_eq(rte->ops->get(rte, 8, "card", &blob, &length), STRATA_ERR_RANK);
    char text[300];
    rte->ops->get_failures(rte, 2, text, sizeof(text));
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(rte->ops->get(rte, 2, "card", &blob, &length), STRATA_ERR_NOT_FOUND);
    for (int i = 0; i < 20; i++) /* the latest stay, each once */
        ck_assert_int_eq(rte->ops->get(rte, 2, i % 2 ? "card" : "other", &blob, &length), STRATA_ERR_NOT_FOUND);
    rte->ops->get_failures(rte, 2, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "get(rank 2, key \"card\") answered: "));
    ck_assert_ptr_nonnull(strstr(text, "get(rank 2, key \"other\") answered: "));
    ck_assert_ptr_null(strstr(text, "rank 3"));
    rte->ops->get_failures(rte, 2, text, 20); /* no room: cut */
    ck_assert_uint_eq(strlen(text), 19);
    ck_assert_int_eq(rte->ops->fence(rte), STRATA_OK);
    ck_assert_int_eq(e.fences, 1);
    rte->ops->abort(rte, 9, "test");
    ck_assert_int_eq(e.aborted, 9);
    ck_assert_str_eq(rte->ops->host_of(rte, 2), "node2");
    ck_assert_str_eq(rte->ops->host_of(rte, 1), "here");
    ck_assert_str_eq(rte->ops->host_of(rte, 8), "?");
    rte->ops->close(rte);
}
END_TEST

START_TEST(locality)
{
    struct embedder e = {0};
    strata_host_t h = table(&e, 1, 10);
    int n = 0;

    struct st_rte *rte = open_on(&h); /* no callbacks: all are local */
    const int *local = rte->ops->local_ranks(rte, &n);
    ck_assert_int_eq(n, 10);
    ck_assert_int_eq(local[9], 9);
    ck_assert(rte->ops->is_local(rte, 5));
    ck_assert(!rte->ops->is_local(rte, 10));
    rte->ops->close(rte);

    h.is_local = every_third;
    rte = open_on(&h);
    ck_assert_int_eq(e.asked_local, 0);
    local = rte->ops->local_ranks(rte, &n);
    const int expected[] = {0, 1, 3, 6, 9}; /* itself included, ascending */
    ck_assert_int_eq(n, 5);
    ck_assert_mem_eq(local, expected, sizeof(expected));
    ck_assert(rte->ops->is_local(rte, 1));
    ck_assert(!rte->ops->is_local(rte, 2));
    rte->ops->close(rte);

    h.is_local = NULL;
    h.local_ranks = list_ranks;
    rte = open_on(&h);
    local = rte->ops->local_ranks(rte, &n);
    ck_assert_ptr_eq(local, listed);
    ck_assert_int_eq(n, 3);
    ck_assert(rte->ops->is_local(rte, 4));
    ck_assert(!rte->ops->is_local(rte, 5));
    rte->ops->close(rte);
}
END_TEST

/* Bytes that an open of a world of n ranks takes, where every third rank is on this host. */
static size_t bytes_of_open(int n)
{
    struct embedder e = {0};
    strata_host_t h = table(&e, 77, n);
    h.is_local = every_third;
    size_t before = mallinfo2().uordblks;
    struct st_rte *rte = open_on(&h);
    size_t bytes = mallinfo2().uordblks - before;
    ck_assert_int_eq(rte->size, n);
    rte->ops->close(rte);
    ck_assert_int_eq(e.asked_local, 0);
    return bytes;
}

/* Opening asks about no rank and keeps nothing per rank: its cost does not depend on how many there are. */
START_TEST(million_ranks_open_at_the_cost_of_a_hundred)
{
    bytes_of_open(100); /* what is paid once for a process */
    ck_assert_uint_eq(bytes_of_open(1000000), bytes_of_open(100));
}
END_TEST

START_TEST(faulty_tables_are_refused)
{
    const struct st_component *c = &st_component_rte_host;
    const struct st_rte_component_ops *ops = c->ops;
    struct embedder e = {0};
    struct st_rte *rte = NULL;
    ck_assert_int_eq(ops->open(NULL, c, NULL, NULL, &rte), STRATA_ERR_UNSUPPORTED);
    for (int fault = 0; fault < 6; fault++) {
        strata_host_t h = table(&e, 0, 2);
        if (fault == 0)
            h.size = 8;
        else if (fault == 1)
            h.get = NULL;
        else if (fault == 2)
            h.job_id = NULL;
        else if (fault == 3)
            h.rank = 2;
        else if (fault == 4)
            h.n_ranks = STRATA_RANKS_OPEN; /* without lists of who is here */
        else
            h.n_ranks = 0;
        ck_assert_int_eq(ops->open(NULL, c, NULL, &h, &rte), STRATA_ERR_ARG);
        ck_assert_ptr_null(rte);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rte_host");
    TCase *tc = tcase_create("host");
    tcase_add_test(tc, forwards);
    tcase_add_test(tc, locality);
    tcase_add_test(tc, million_ranks_open_at_the_cost_of_a_hundred);
    tcase_add_test(tc, faulty_tables_are_refused);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
