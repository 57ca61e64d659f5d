/* Bursts of messages to a peer: counted between two rounds of progress, where they follow one another quickly. */
/* one thread */
#include <unistd.h>
#include "tcp_rig.h"

enum { AT = 4 };

static struct st_btl_endpoint *ep;

static void setup(void)
{
    rig_open(0);
    rig_open(1);
    rig[0].par.coalesce_at = AT;
    ep = rig_connect(0, 1);
    AWAIT(rig_send(ep, 0, NULL, 0) == STRATA_OK, rig_poll());
    rig_poll();
}

static void teardown(void)
{
    rig_close(0);
    rig_close(1);
}

static bool told(void)
{
    return (ep->caps & ST_BTL_CROWDED) != 0;
}

static void message(void)
{
    ck_assert_int_eq(rig_send(ep, 1, "x", 1), STRATA_OK);
}

/* A busy machine may take longer than a millisecond for four messages: then there is another try. */
START_TEST(a_burst_is_told_until_the_next_progress)
{
    bool early = false;

    for (int tries = 0; tries < 1000 && !told(); tries++) {
        rig_poll();
        for (int i = 0; i < AT; i++) {
            early = early || told();
            message();
        }
    }
    ck_assert(told() && !early);
    rig_poll();
    ck_assert(!told());
}
END_TEST

START_TEST(messages_with_work_between_are_none)
{
    for (int i = 0; i < 5 * AT; i++) {
        message();
        ck_assert(!told());
        usleep(2000);
    }
}
END_TEST

START_TEST(nothing_is_told_where_it_is_off)
{
    rig[0].par.coalesce_at = 0;
    for (int i = 0; i < 5 * AT; i++)
        message();
    ck_assert(!told());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bursts");
    TCase *t = tcase_create("bursts");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_burst_is_told_until_the_next_progress);
    tcase_add_test(t, messages_with_work_between_are_none);
    tcase_add_test(t, nothing_is_told_where_it_is_off);
    suite_add_tcase(s, t);
    return run_suite(s);
}
