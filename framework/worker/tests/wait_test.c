/* Waiting: how polls, yields and the embedder's turns follow each other. */
#define _GNU_SOURCE 1
#include <check.h>

#include "support/sleeper.h"
#include "support/run_suite.h"

static struct sleeper s;
static int n_polls, n_yields, n_idle;
static bool polled;

/* In place of libc's. What arrives while others run is there when it returns, so the next step has to be a poll. */
int sched_yield(void)
{
    ck_assert(polled);
    polled = false;
    n_yields++;
    return 0;
}

static int poll_once(struct st_btl *b)
{
    (void)b;
    polled = true;
    n_polls++;
    return 0;
}
static const struct st_btl_ops ops = {.progress = poll_once, .arm = sleeper_arm, .disarm = sleeper_disarm};

/* A yield that was long by the clock, as on a busy machine, makes the worker sleep instead: that ends the wait, too. */
static bool has_yielded_enough(void *arg)
{
    return n_yields >= *(int *)arg || st_worker_is_busy(&s.w.head);
}

/* An embedder that gives the processor away when it has nothing to do, as Open MPI does. */
static int idle(void *user)
{
    (void)user;
    n_idle++;
    sched_yield();
    return 0;
}

/* True when no yield was long. */
static bool wait_for_yields(strata_host_t *host, int enough)
{
    bool whole;
    n_polls = n_yields = n_idle = 0;
    polled = false;
    sleeper_make(&s, 1, &ops);
    s.context.host = host;
    s.context.spin_limit = 2;
    s.context.yield_limit = 1000;
    st_worker_wait(&s.w.head, has_yielded_enough, &enough);
    whole = !st_worker_is_busy(&s.w.head);
    sleeper_end(&s);
    return whole;
}

START_TEST(each_yield_is_followed_by_a_poll)
{
    strata_host_t host = {.idle = idle};
    int enough = 40;
    while (!wait_for_yields(_i ? &host : NULL, enough))
        ;
    ck_assert_int_eq(n_yields, enough);
    ck_assert_int_eq(n_idle, _i ? enough / 2 : 0); /* both get their turns */
    ck_assert_int_le(n_polls, enough + 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wait");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, each_yield_is_followed_by_a_poll, 0, 2);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
