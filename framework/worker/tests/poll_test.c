/* How often modules are polled: cheap ones always, costly ones seldom while nothing comes from them. */
#include <check.h>
#include <stdlib.h>
#include "framework/worker/worker.h"
#include "support/await.h"
#include "support/run_suite.h"

static int polls[2];
static bool waiting; /* the costly one has something */

static int progress_cheap(struct st_btl *btl)
{
    (void)btl;
    polls[0]++;
    return 0;
}

static int progress_costly(struct st_btl *btl)
{
    (void)btl;
    int n = waiting;
    polls[1]++;
    waiting = false;
    return n;
}

static const struct st_btl_ops cheap_ops = {.progress = progress_cheap}, costly_ops = {.progress = progress_costly};
static struct st_btl cheap = {.ops = &cheap_ops}, costly = {.ops = &costly_ops, .caps = ST_BTL_COSTLY_POLL};
static struct st_btl *btls[] = {&cheap, &costly};
static struct st_bml bml = {.btls = btls, .n_btls = 2};

/* One round; whether the costly module was asked in it. */
static bool asked_in_round(struct worker *w, int *rounds)
{
    int before = polls[1];
    st_worker_poll(&w->head);
    ++*rounds;
    return polls[1] != before;
}

START_TEST(costly_ones_seldom)
{
    struct worker worker = {.head = {.bml = &bml}};
    struct st_worker *w = &worker.head;
    ck_assert_int_eq(worker_poll_create(&worker), STRATA_OK);
    st_worker_poll_add(w, &cheap); /* nothing twice */
    st_worker_poll_add(w, &costly);
    ck_assert_uint_eq(worker.n_poll, 2);

    int rounds = 0;
    AWAIT(!asked_in_round(&worker, &rounds), ); /* it has been quiet for a while */
    int quiet = polls[1];
    for (int i = 0; i < 16000; i++)
        asked_in_round(&worker, &rounds);
    ck_assert_int_le(polls[1] - quiet, 1000); /* in one of 16 rounds at most */
    quiet = polls[1];
    AWAIT(polls[1] >= quiet + 10, asked_in_round(&worker, &rounds)); /* but for ever */
    ck_assert_int_eq(polls[0], rounds);

    waiting = true; /* late, but found: by then every round asks */
    AWAIT(st_worker_poll(w) != 0, );
    int before = polls[1];
    for (int i = 0; i < 20; i++) {
        waiting = true;
        ck_assert_int_eq(st_worker_poll(w), 1);
    }
    ck_assert_int_eq(polls[1], before + 20);

    AWAIT(!asked_in_round(&worker, &rounds), );
    st_worker_poll_soon(w); /* after a sleep: at once */
    waiting = true;
    ck_assert_int_eq(st_worker_poll(w), 1);
    worker_poll_destroy(&worker);
}
END_TEST

START_TEST(a_costly_one_alone_always)
{
    struct st_btl *alone[] = {&costly};
    struct st_bml only = {.btls = alone, .n_btls = 1};
    struct worker worker = {.head = {.bml = &only}};
    int before = polls[1];
    ck_assert_int_eq(worker_poll_create(&worker), STRATA_OK);
    for (int i = 0; i < 100000; i++)
        st_worker_poll(&worker.head);
    ck_assert_int_eq(polls[1], before + 100000);
    worker_poll_destroy(&worker);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worker_poll");
    TCase *tc = tcase_create("poll");
    tcase_add_test(tc, costly_ones_seldom);
    tcase_add_test(tc, a_costly_one_alone_always);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
