/* How often modules are polled: cheap ones always, costly ones seldom while nothing comes from them. */
#include <check.h>
#include <stdlib.h>
#include <time.h>
#include "ob1_inl.h"
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

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static const struct st_btl_ops cheap_ops = {.progress = progress_cheap}, costly_ops = {.progress = progress_costly};
static struct st_btl cheap = {.ops = &cheap_ops}, costly = {.ops = &costly_ops, .caps = ST_BTL_COSTLY_POLL};
static struct st_btl *btls[] = {&cheap, &costly};
static struct st_bml bml = {.btls = btls, .n_btls = 2};

START_TEST(costly_ones_seldom)
{
    struct ob1 pml = {.head = {.bml = &bml}};
    costly.am[ST_AM_PML].arg = &pml;
    ck_assert_int_eq(ob1_poll_create(&pml), STRATA_OK);
    ob1_poll_refresh(&pml);
    ob1_poll_refresh(&pml); /* nothing twice */
    ck_assert_uint_eq(pml.n_poll, 2);

    int rounds = 0;
    double start = now_us();
    while (now_us() - start < 30000) {
        ob1_poll(&pml);
        rounds++;
    }
    ck_assert_int_eq(polls[0], rounds);
    ck_assert_int_ge(polls[1], 10);
    ck_assert_int_le(polls[1], 30000 / 100 + 1000); /* every 100 us in the end */

    waiting = true; /* late, but found: by then every round asks */
    while (ob1_poll(&pml) == 0)
        ;
    int before = polls[1];
    for (int i = 0; i < 20; i++) {
        waiting = true;
        ck_assert_int_eq(ob1_poll(&pml), 1);
    }
    ck_assert_int_eq(polls[1], before + 20);

    start = now_us();
    while (now_us() - start < 2000)
        ob1_poll(&pml);
    ob1_poll_soon(&pml); /* after a sleep: at once */
    waiting = true;
    ck_assert_int_eq(ob1_poll(&pml), 1);
    ob1_poll_destroy(&pml);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_poll");
    TCase *tc = tcase_create("poll");
    tcase_add_test(tc, costly_ones_seldom);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
