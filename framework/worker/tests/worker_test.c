/* The worker between two clients and two modules: who is called, when, and what becomes of failures. */
#include <check.h>
#include <string.h>
#include "framework/worker/worker.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

static strata_t *s;
static struct st_worker *w;

/* A second client, beside the fake PML. */
static struct {
    int delivered, attended, outside, failed_rank, failed_rc, n_failed;
    int drain_asked, drain_after;
    int n_notices;
    uint32_t notice;
} seen;

static void deliver(void *arg, const struct st_frag *frag)
{
    ck_assert_ptr_eq(arg, &seen);
    (void)frag;
    seen.delivered++;
}
static int attend(void *arg)
{
    ck_assert_ptr_eq(arg, &seen);
    seen.attended++;
    return 1;
}
static void peer_failed(void *arg, struct st_peer *peer)
{
    ck_assert_ptr_eq(arg, &seen);
    seen.failed_rank = peer->rank;
    seen.failed_rc = peer->failed;
    seen.n_failed++;
}
static void outside(void *arg)
{
    (void)arg;
    seen.outside++;
    strata_progress(s); /* a callback may */
}
static void notified(void *arg, int rank, uint32_t notice)
{
    ck_assert_ptr_eq(arg, &seen);
    ck_assert_int_eq(rank, 3);
    seen.n_notices++;
    seen.notice = notice;
}
static bool drained(void *arg)
{
    (void)arg;
    return ++seen.drain_asked >= seen.drain_after;
}
static const struct st_client client = {.am = ST_AM_TEST,
                                        .deliver = deliver,
                                        .notified = notified,
                                        .attend = attend,
                                        .peer_failed = peer_failed,
                                        .outside = outside,
                                        .drained = drained};
static const struct st_client same_messages = {.am = ST_AM_TEST, .deliver = deliver};
static const struct st_client takes_nothing = {.am = ST_AM_STREAM};

static void start(void)
{
    memset(&seen, 0, sizeof seen);
    s = fake_start();
    w = fake.pml->worker;
    ck_assert_int_eq(st_worker_join(w, &client, &seen), STRATA_OK);
}
static void end(void)
{
    st_worker_leave(w, &client);
    fake_end(s);
}

START_TEST(clients_join_and_leave)
{
    struct st_frag frag = {.btl = fake.btl[0]};
    ck_assert_int_eq(st_worker_join(w, &same_messages, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(st_worker_join(w, &takes_nothing, NULL), STRATA_ERR_ARG);
    st_worker_leave(w, &same_messages); /* it never joined */
    for (int i = 0; i < 2; i++)
        st_btl_deliver(fake.btl[i], ST_AM_TEST, &frag);
    ck_assert_int_eq(seen.delivered, 2);
    st_worker_attend(w, ST_ATTEND_WORK << ST_AM_TEST);
    st_worker_leave(w, &client);
    st_btl_deliver(fake.btl[0], ST_AM_TEST, &frag);
    strata_progress(s);
    ck_assert_int_eq(seen.delivered, 2);
    ck_assert_int_eq(seen.attended, 0);
}
END_TEST

START_TEST(attends_while_asked)
{
    strata_progress(s);
    ck_assert_int_eq(seen.attended, 0);
    for (uint32_t bit = ST_ATTEND_WORK; bit <= ST_ATTEND_LOOK; bit *= ST_ATTEND_LOOK / ST_ATTEND_WORK) {
        int before = seen.attended;
        st_worker_attend(w, bit << ST_AM_TEST);
        ck_assert_int_ge(strata_progress(s), 1);
        strata_progress(s);
        ck_assert_int_eq(seen.attended, before + 2);
        st_worker_calm(w, bit << ST_AM_TEST);
        strata_progress(s);
        ck_assert_int_eq(seen.attended, before + 2);
    }
    ck_assert_int_eq(seen.outside, 0);
    st_worker_news(w);
    strata_progress(s);
    strata_progress(s);
    ck_assert_int_eq(seen.outside, 1);
}
END_TEST

START_TEST(failures_reach_every_client_once)
{
    st_worker_peer_failed(w, 3, STRATA_ERR_PEER, "unplugged");
    st_worker_peer_failed(w, 3, STRATA_ERR_NOMEM, "again");
    ck_assert_int_eq(seen.n_failed, 0); /* only recorded */
    strata_progress(s);
    ck_assert_int_eq(seen.n_failed, 1);
    ck_assert_int_eq(seen.failed_rank, 3);
    ck_assert_int_eq(seen.failed_rc, STRATA_ERR_PEER); /* the first word counts */
    ck_assert_int_eq(fake.failed_rank, 3);
    ck_assert_uint_eq(w->n_failed, 1);
    ck_assert(st_worker_any_failed(w));
    st_worker_peer_failed(w, 3, STRATA_ERR_PEER, "and later");
    st_worker_peer_failed(w, -1, STRATA_ERR_PEER, "nobody");
    st_worker_peer_failed(w, 4, STRATA_ERR_PEER, "nobody");
    st_worker_peer_failed(w, 2, STRATA_OK, NULL);
    st_worker_tell_failures(w);
    ck_assert_int_eq(seen.n_failed, 2);
    ck_assert_int_eq(seen.failed_rc, STRATA_ERR_PEER);
    ck_assert_uint_eq(w->n_failed, 2);
}
END_TEST

/* Messages that waited for a peer report its failure: more of them than `attention` can count. */
START_TEST(a_failure_may_be_reported_any_number_of_times)
{
    for (uint32_t i = 0; i < UINT32_MAX / ST_ATTEND_FAILURE + 1; i++)
        st_worker_peer_failed(w, 3, STRATA_ERR_PEER, "unplugged");
    strata_progress(s);
    ck_assert_int_eq(seen.n_failed, 1);
    st_worker_peer_failed(w, 2, STRATA_ERR_PEER, "unplugged");
    st_worker_peer_failed(w, 3, STRATA_ERR_PEER, "again");
    strata_progress(s);
    ck_assert_int_eq(seen.n_failed, 2);
    ck_assert_int_eq(seen.failed_rank, 2);
}
END_TEST

START_TEST(the_only_path_lost_is_a_failure)
{
    struct st_btl_endpoint ep = {.btl = fake.btl[0], .rank = 2};
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, &ep, STRATA_ERR_PEER, NULL);
    strata_progress(s);
    ck_assert_int_eq(seen.n_failed, 1);
    ck_assert_int_eq(seen.failed_rank, 2);
}
END_TEST

static void notice(uint32_t word, uint32_t hdr_len, uint32_t len)
{
    struct st_frag frag = {.btl = fake.btl[0], .rank = 3, .hdr = &word, .hdr_len = hdr_len, .data = &word, .len = len};
    st_btl_deliver(fake.btl[0], ST_AM_NOTICE, &frag);
}

START_TEST(notices_reach_their_client)
{
    notice((uint32_t)ST_AM_TEST << 28 | 0x0abcdef, 4, 0);
    ck_assert_int_eq(seen.n_notices, 1);
    ck_assert_uint_eq(seen.notice, 0x0abcdef);
    notice((uint32_t)ST_AM_COLL << 28, 4, 0); /* for a client that is not there: dropped */
    notice((uint32_t)ST_AM_TEST << 28, 3, 0); /* malformed, or for nobody: dropped and counted */
    notice((uint32_t)ST_AM_TEST << 28, 4, 1);
    notice((uint32_t)ST_AM_PML << 28, 4, 0); /* takes none */
    notice(UINT32_MAX, 4, 0);
    ck_assert_int_eq(seen.n_notices, 1);
    ck_assert_uint_eq(worker_of(w)->n_protocol_errors, 4);
}
END_TEST

static bool third_time(void *arg)
{
    int *n = arg;
    return ++*n >= 3;
}

START_TEST(waits)
{
    int n = 0;
    st_worker_wait(w, third_time, &n);
    ck_assert_int_ge(n, 3);
    n = 0;
    st_worker_wait_long(w, third_time, &n);
    ck_assert_int_ge(n, 3);
    seen.drain_after = 5;
    st_worker_drain(w);
    ck_assert_int_ge(seen.drain_asked, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *tc = tcase_create("clients");
    tcase_add_checked_fixture(tc, start, end);
    tcase_add_test(tc, clients_join_and_leave);
    tcase_add_test(tc, attends_while_asked);
    tcase_add_test(tc, failures_reach_every_client_once);
    tcase_add_test(tc, a_failure_may_be_reported_any_number_of_times);
    tcase_add_test(tc, the_only_path_lost_is_a_failure);
    tcase_add_test(tc, notices_reach_their_client);
    tcase_add_test(tc, waits);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
