/* The life of a context over fake components: order, unwinding, error texts, fates. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "support/fake_stack.h"
#include "support/await.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

static char err[1024];

START_TEST(order_of_a_life)
{
    strata_t *s = NULL;
    fake_reset(1, 4);
    fake.fence_polls = 1;
    ck_assert_int_eq(fake_init(NULL, &s, err, sizeof(err)), STRATA_OK);
    ck_assert_int_eq(strata_rank(s), 1);
    ck_assert_int_eq(strata_size(s), 4);
    ck_assert_int_eq(strata_comm_rank(strata_world(s)), 1);
    ck_assert_int_eq(strata_comm_size(strata_world(s)), 4);
    ck_assert_ptr_eq(strata_comm_context(strata_world(s)), s);
    ck_assert_ptr_null(strata_comm_user(strata_world(s)));
    ck_assert(!st_thread_multiple(s));
    ck_assert_ptr_nonnull(st_rte(s));
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    ck_assert_str_eq(fake.trace,
                     "frte+ fbtla+ fbtlb+ commit fbml+ fpml+ comm0+ drain fence comm0- pml- bml- btl- btl- rte-");
    ck_assert_int_eq(fake.open, 0);
}
END_TEST

START_TEST(unwinds_from_any_failure)
{
    static const struct {
        unsigned fail;
        int rc;
        const char *says;
    } cases[] = {
        {1u << FAKE_RTE | 1u << FAKE_RTE_LOW, STRATA_ERR_NOT_FOUND, "no rte component can be used: frte: told to fail"},
        {1u << FAKE_BTL_A | 1u << FAKE_BTL_B, STRATA_ERR_NOT_FOUND, "rank 0 on host fakehost: no btl component"},
        {1u << FAKE_COMMIT, STRATA_ERR_SYSTEM, "publishing"},
        {1u << FAKE_BML, STRATA_ERR_NOT_FOUND, "no bml component can be used: fbml: told to fail"},
        {1u << FAKE_PML, STRATA_ERR_NOT_FOUND, "no pml component can be used: fpml: told to fail"},
        {1u << FAKE_COMM, STRATA_ERR_NOMEM, "out of memory"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strata_t *s = NULL;
        fake_reset(0, 2);
        fake.fail = cases[i].fail;
        ck_assert_int_eq(fake_init(NULL, &s, err, sizeof(err)), cases[i].rc);
        ck_assert_ptr_null(s);
        ck_assert_msg(strstr(err, cases[i].says) != NULL, "case %zu says: %s", i, err);
        ck_assert_int_eq(fake.open, 0);
    }
}
END_TEST

START_TEST(asked_for_by_name_is_a_hard_error)
{
    strata_t *s = NULL;
    fake_reset(3, 4);
    fake.fail = 1u << FAKE_BTL_B;
    ck_assert_int_eq(fake_init("btl=fbtla,fbtlb", &s, err, sizeof(err)), STRATA_ERR_UNSUPPORTED);
    ck_assert_msg(
        strstr(err, "rank 3 on host fakehost: component btl fbtlb was asked for and cannot be used: told to fail"),
        "%s", err);
    ck_assert_int_eq(fake.open, 0);
    /* The same failure without the name is nobody's concern. */
    fake_reset(3, 4);
    fake.fail = 1u << FAKE_BTL_B;
    ck_assert_int_eq(fake_init(NULL, &s, err, sizeof(err)), STRATA_OK);
    ck_assert_uint_eq(s->n_btls, 1);
    ck_assert_str_eq(st_mca_reject_reason(s->mca, &fake_btl_b), "told to fail");
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    fake_reset(0, 1);
    fake.fail = 1u << FAKE_RTE;
    ck_assert_int_eq(fake_init("rte=frte", &s, err, sizeof(err)), STRATA_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err, "no rte component can be used: frte: told to fail"), "%s", err);
}
END_TEST

START_TEST(first_usable_wins)
{
    strata_t *s = NULL;
    fake_reset(0, 1);
    fake.fail = 1u << FAKE_RTE;
    ck_assert_int_eq(fake_init("btl=^fbtla", &s, err, sizeof(err)), STRATA_OK);
    ck_assert_str_eq(fake.trace, "frtelow+ fbtlb+ commit fbml+ fpml+ comm0+");
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
}
END_TEST

START_TEST(bad_arguments)
{
    strata_t *s = NULL;
    fake_reset(0, 1);
    ck_assert_int_eq(strata_init(NULL, NULL), STRATA_ERR_ARG);
    strata_config_t c = STRATA_CONFIG_INIT;
    c.size = 3;
    ck_assert_int_eq(strata_init(&c, &s), STRATA_ERR_ARG);
    c = (strata_config_t)STRATA_CONFIG_INIT;
    c.error_text = err;
    c.error_text_size = sizeof(err);
    c.thread_level = (strata_thread_level_t)7;
    ck_assert_int_eq(strata_init(&c, &s), STRATA_ERR_ARG);
    ck_assert_msg(strstr(err, "thread_level 7") != NULL, "%s", err);
    c.thread_level = STRATA_THREAD_SINGLE;
    c.n_command_line = 1;
    ck_assert_int_eq(strata_init(&c, &s), STRATA_ERR_ARG);
    c.n_command_line = 0;
    strata_host_t h = {.size = 5};
    c.host = &h;
    ck_assert_int_eq(strata_init(&c, &s), STRATA_ERR_ARG);
    h.size = sizeof(h);
    ck_assert_int_eq(strata_init(&c, &s), STRATA_ERR_ARG);
    ck_assert_msg(strstr(err, "host table") != NULL, "%s", err);
    ck_assert_int_eq(fake_init("btl=nosuch", &s, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_msg(strstr(err, "nosuch") != NULL, "%s", err);
    ck_assert_int_eq(fake_init("mca_base_spin=many", &s, err, sizeof(err)), STRATA_ERR_PARAM);
    ck_assert_int_eq(strata_finalize(NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_fence(NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_abort(NULL, 1, ""), STRATA_ERR_ARG);
}
END_TEST

START_TEST(broken_btl_is_rejected)
{
    strata_t *s = NULL;
    struct st_btl_ops ops = {0};
    fake_reset(0, 1);
    fake.break_btl = &ops;
    ck_assert_int_eq(fake_init("btl=fbtla", &s, err, sizeof(err)), STRATA_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(err, "breaks the btl contract") != NULL, "%s", err);
    free(fake.btl[0]); /* there was no close to call */
}
END_TEST

START_TEST(fence_makes_progress)
{
    strata_t *s = NULL;
    for (int blocking = 0; blocking < 2; blocking++) {
        fake_reset(0, 2);
        fake.fence_blocking = blocking;
        fake.fence_polls = 300;
        ck_assert_int_eq(fake_init(NULL, &s, err, sizeof(err)), STRATA_OK);
        ck_assert_int_eq(strata_fence(s), STRATA_OK);
        ck_assert_int_ge(fake.progressed, 300);
        fake.fence_polls = 0;
        ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    }
}
END_TEST

/* ---- what an embedder hears -------------------------------------------------------------------------------------- */

struct heard {
    char log[2048];
    int errors, failed_rank, failures;
};

static void hear_log(void *user, int level, const char *text)
{
    struct heard *h = user;
    h->errors += level == ST_LOG_ERROR;
    strncat(h->log, text, sizeof(h->log) - strlen(h->log) - 2);
    strcat(h->log, "\n");
}
static void hear_failure(void *user, int rank, int rc, const char *reason)
{
    struct heard *h = user;
    ck_assert_int_eq(rc, STRATA_ERR_PEER);
    ck_assert_str_eq(reason, "killed");
    h->failed_rank = rank;
    h->failures++;
}
static int host_put(void *u, const char *k, const void *b, size_t n)
{
    (void)u, (void)k, (void)b, (void)n;
    return STRATA_OK;
}
static int host_get(void *u, int r, const char *k, void **b, size_t *n)
{
    (void)u, (void)r, (void)k, (void)b, (void)n;
    return STRATA_ERR_NOT_FOUND;
}
static int host_fence(void *u)
{
    (void)u;
    return STRATA_OK;
}

static strata_host_t host_table(struct heard *h)
{
    return (strata_host_t){.size = sizeof(strata_host_t),
                           .user = h,
                           .n_ranks = 4,
                           .put = host_put,
                           .get = host_get,
                           .fence = host_fence,
                           .log = hear_log,
                           .peer_failed = hear_failure};
}

START_TEST(embedder_hears)
{
    struct heard heard = {.failed_rank = -1};
    strata_host_t table = host_table(&heard);
    strata_config_t c = STRATA_CONFIG_INIT;
    strata_t *s = NULL;
    c.host = &table;
    fake_reset(0, 4);
    fake.fail = 1u << FAKE_PML;
    ck_assert_int_eq(fake_init_config(&c, NULL, &s), STRATA_ERR_NOT_FOUND);
    ck_assert_int_eq(heard.errors, 1);
    ck_assert_msg(strstr(heard.log, "no pml component") != NULL, "%s", heard.log);
    fake_reset(0, 4);
    ck_assert_int_eq(fake_init_config(&c, NULL, &s), STRATA_OK);
    fake.watch(fake.watch_arg, 2, "killed");
    strata_progress(s);
    ck_assert_int_eq(fake.failed_rank, 2);
    fake.btl[0]->peer_failed(fake.btl[0]->peer_failed_arg, 3, STRATA_ERR_PEER, "killed");
    strata_progress(s);
    ck_assert_int_eq(fake.failed_rank, 3);
    ck_assert_int_eq(strata_host_peer_failed(s, 1, "killed"), STRATA_OK);
    strata_progress(s);
    ck_assert_int_eq(fake.failed_rank, 1);
    ck_assert_int_eq(strata_host_peer_failed(s, 4, "killed"), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_host_peer_failed(NULL, 1, "killed"), STRATA_ERR_ARG);
    st_worker_peer_failed(fake.pml->worker, 2, STRATA_ERR_PEER, "killed again");
    strata_progress(s);
    ck_assert_int_eq(fake.failed_rank, 1); /* once per rank */
    ck_assert_int_eq(heard.failures, 3);
    ck_assert_int_eq(heard.failed_rank, 1);
    ck_assert_msg(strstr(heard.log, "rank 2 on host fakehost failed: the peer failed: killed") != NULL, "%s",
                  heard.log);
    ck_assert_int_eq(strata_abort(s, 9, "enough"), STRATA_OK);
    ck_assert_msg(strstr(fake.trace, "abort:9:enough") != NULL, "%s", fake.trace);
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
}
END_TEST

static void peer_fails(strata_t *s)
{
    st_worker_peer_failed(fake.pml->worker, 2, STRATA_ERR_PEER, "killed");
    strata_progress(s);
}

START_TEST(fence_that_never_ends)
{
    strata_t *s = NULL;
    fake_reset(0, 4);
    ck_assert_int_eq(fake_init("mca_base_fence_after_failure_ms=240000", &s, err, sizeof(err)), STRATA_OK);
    peer_fails(s);
    ck_assert_int_eq(strata_fence(s), STRATA_OK); /* the launcher ends it */
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    fake_reset(0, 4);
    ck_assert_int_eq(fake_init("mca_base_fence_after_failure_ms=50", &s, err, sizeof(err)), STRATA_OK);
    peer_fails(s);
    fake.fence_polls = INT_MAX;
    ck_assert_int_eq(strata_fence(s), STRATA_ERR_PEER);
    ck_assert_int_eq(strata_fence(s), STRATA_ERR_PEER);
    ck_assert_int_eq(strata_finalize(s), STRATA_ERR_PEER);
    ck_assert_int_eq(fake.open, 0);
    __atomic_store_n(&fake.fence_polls, 0, __ATOMIC_RELEASE); /* the answer comes when nobody waits */
    AWAIT(fake_fences_over(), usleep(1000));
}
END_TEST

START_TEST(reports_transports)
{
    struct heard heard = {.failed_rank = -1};
    strata_host_t table = host_table(&heard);
    strata_config_t c = STRATA_CONFIG_INIT;
    strata_t *s = NULL;
    char *json = NULL;
    c.host = &table;
    fake_reset(0, 4);
    ck_assert_int_eq(fake_init_config(&c, "mca_base_report_transports=text", &s), STRATA_OK);
    ck_assert_int_eq(strata_peer_report(s, 4, &json), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_peer_report(NULL, 0, &json), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_peer_report(s, 2, &json), STRATA_OK);
    ck_assert_ptr_nonnull(strstr(json, "\"single_copy\": \"none\""));
    ck_assert_ptr_nonnull(strstr(json, "\"transport\": \"fbtla\""));
    ck_assert_ptr_nonnull(strstr(json, "\"eager_up_to\": 1024"));
    free(json);
    struct st_peer *peer;
    ck_assert_int_eq(st_worker_peer(s->worker, 3, &peer), STRATA_OK); /* it has sent, and nobody sends to it */
    fake.btl[0]->messages_sent = 3;
    fake.btl[0]->bytes_sent = 40;
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    ck_assert_msg(strstr(heard.log, "peer 2 on fakehost: path 1 of 1 by fbtla, weight 1.00") != NULL, "%s", heard.log);
    ck_assert_msg(strstr(heard.log, "device fakedev") != NULL, "%s", heard.log);
    ck_assert_msg(strstr(heard.log,
                         "peer 2 on fakehost: sent 7 messages, 70 bytes; received 1 message, 5 bytes by fbtla") != NULL,
                  "%s", heard.log);
    /* Of a rank that this one only receives from. */
    ck_assert_msg(strstr(heard.log,
                         "peer 3 on fakehost: sent 0 messages, 0 bytes; received 2 messages, 9 bytes by fbtlb") != NULL,
                  "%s", heard.log);
    ck_assert_ptr_null(strstr(heard.log, "peer 3 on fakehost: path"));
    ck_assert_msg(strstr(heard.log, "all 1 peer by fbtlb: sent 0 messages, 0 bytes; received 2 messages, 9 bytes") !=
                      NULL,
                  "%s", heard.log);
    ck_assert_msg(strstr(heard.log, "peer 2: protocols, eager_up_to 1024, get yes") != NULL, "%s", heard.log);
    ck_assert_msg(strstr(heard.log, "transport fbtla: 3 fragments, puts and gets begun, 40 bytes sent or put") != NULL,
                  "%s", heard.log);
    heard.log[0] = '\0';
    fake_reset(0, 4);
    ck_assert_int_eq(fake_init_config(&c, "mca_base_report_transports=json", &s), STRATA_OK);
    ck_assert_int_eq(strata_peer_report(s, 1, &json), STRATA_OK);
    free(json);
    fake.btl[0]->messages_sent = 3;
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    ck_assert_ptr_null(strstr(heard.log, "fbtlb")); /* open, but not used */
    ck_assert_msg(heard.log[0] == '{' && strstr(heard.log, "\"transports\":[{") != NULL, "%s", heard.log);
}
END_TEST

static void add_line(void *arg, const strata_mem_line_t *line)
{
    size_t *sum = arg;
    *sum += line->bytes;
}

START_TEST(memory_is_summed)
{
    strata_t *s = NULL;
    size_t sum = 0;
    fake_reset(0, 1);
    ck_assert_int_eq(fake_init(NULL, &s, err, sizeof(err)), STRATA_OK);
    ck_assert_int_eq(strata_mem_report(s, add_line, &sum), STRATA_OK);
    ck_assert_uint_ge(sum, 4096 + 100 + sizeof(struct strata));
    ck_assert_int_eq(strata_mem_report(s, NULL, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
}
END_TEST

/* A context is small, whatever the job: the peers' costs are elsewhere. */
_Static_assert(sizeof(struct strata) <= 512, "struct strata grew");

int main(void)
{
    Suite *suite = suite_create("context");
    TCase *t = tcase_create("all");
    tcase_add_test(t, order_of_a_life);
    tcase_add_test(t, unwinds_from_any_failure);
    tcase_add_test(t, asked_for_by_name_is_a_hard_error);
    tcase_add_test(t, first_usable_wins);
    tcase_add_test(t, bad_arguments);
    tcase_add_test(t, broken_btl_is_rejected);
    tcase_add_test(t, fence_makes_progress);
    tcase_add_test(t, fence_that_never_ends);
    tcase_add_test(t, embedder_hears);
    tcase_add_test(t, reports_transports);
    tcase_add_test(t, memory_is_summed);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
