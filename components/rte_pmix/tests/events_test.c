/* Deaths of peers, as PMIx tells them: to whom, and not after the context is closed, however late PMIx answers. PMIx's
 * registration is the test's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <strata/status.h>
#include "rte_pmix.h"
#include "support/run_suite.h"

enum { HANDLER = 7, SIZE = 4, ME = 1 };

static struct {
    pmix_notification_fn_t handler;
    pmix_hdlr_reg_cbfunc_t registered;
    void *arg;
    pmix_info_t *info;
    int n_taken_back, n_told, rank;
} t;

pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t n_codes, pmix_info_t info[], size_t n_info,
                                          pmix_notification_fn_t handler, pmix_hdlr_reg_cbfunc_t done, void *arg)
{
    (void)codes, (void)n_codes;
    ck_assert_uint_eq(n_info, 1);
    t.handler = handler;
    t.registered = done;
    t.arg = arg;
    t.info = info;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Deregister_event_handler(size_t handler, pmix_op_cbfunc_t done, void *arg)
{
    ck_assert_uint_eq(handler, HANDLER);
    t.n_taken_back++;
    done(PMIX_SUCCESS, arg);
    return PMIX_SUCCESS;
}

static void told(void *arg, int rank, const char *reason)
{
    ck_assert_ptr_eq(arg, &t);
    ck_assert(*reason);
    t.n_told++;
    t.rank = rank;
}

static void dies(const char *nspace, pmix_rank_t rank)
{
    pmix_proc_t who;

    PMIX_LOAD_PROCID(&who, nspace, rank);
    t.handler(HANDLER, PMIX_ERR_PROC_ABORTED, &who, t.info, 1, NULL, 0, NULL, NULL);
}

static struct rte_pmix *watching(void)
{
    static const struct rte_pmix_config config = {.timeout_s = 1};
    struct rte_pmix *r = calloc(1, sizeof(*r));

    ck_assert_ptr_nonnull(r);
    memset(&t, 0, sizeof(t));
    r->config = &config;
    r->common.head.size = SIZE;
    PMIX_LOAD_PROCID(&r->me, "job", ME);
    rte_pmix_watch(&r->common.head, told, &t);
    ck_assert_ptr_nonnull(t.handler);
    return r;
}

START_TEST(tells_of_other_ranks_of_the_job)
{
    struct rte_pmix *r = watching();

    dies("job", 2);
    ck_assert_int_eq(t.n_told, 1);
    ck_assert_int_eq(t.rank, 2);
    dies("job", ME);
    dies("job", SIZE);
    dies("other", 3);
    ck_assert_int_eq(t.n_told, 1);
    t.registered(PMIX_SUCCESS, HANDLER, t.arg);
    rte_pmix_unwatch(r);
    ck_assert_int_eq(t.n_taken_back, 1);
    free(r);
}
END_TEST

START_TEST(tells_nothing_after_the_end)
{
    struct rte_pmix *r = watching();

    rte_pmix_unwatch(r); /* in vain for a second: there is no answer */
    ck_assert_int_eq(t.n_taken_back, 0);
    free(r);
    t.registered(PMIX_SUCCESS, HANDLER, t.arg);
    dies("job", 2);
    ck_assert_int_eq(t.n_told, 0);
}
END_TEST

START_TEST(a_refused_registration)
{
    struct rte_pmix *r = watching();

    t.registered(PMIX_ERR_NOT_SUPPORTED, 0, t.arg);
    rte_pmix_unwatch(r);
    ck_assert_int_eq(t.n_taken_back, 0);
    free(r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rte_pmix events");
    TCase *tc = tcase_create("events");

    tcase_add_test(tc, tells_of_other_ranks_of_the_job);
    tcase_add_test(tc, tells_nothing_after_the_end);
    tcase_add_test(tc, a_refused_registration);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
