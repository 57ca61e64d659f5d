/* A process that waits for others to connect to its link: what ends its sleep. */
#include <check.h>
#include <sys/socket.h>
#include <unistd.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>

#include "channel/link.h"
#include "support/await.h"
#include "support/run_suite.h"

enum { MEMBERS = 3 };

static struct link_member members[MEMBERS];
static int others[MEMBERS]; /* the ends of the members' own */
static strata_channel_link_t l;

/* A link with two members, whose ranks are 1 and 2. */
static void setup(void)
{
    uint16_t port;

    l = (strata_channel_link_t){.members = members, .n_members = MEMBERS};
    l.listener = st_socket_listen(true, &port);
    ck_assert_int_ge(l.listener, 0);
    members[0].fd = others[0] = -1;
    for (int i = 1; i < MEMBERS; i++) {
        int ends[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        members[i].fd = ends[0];
        others[i] = ends[1];
    }
}

static void teardown(void)
{
    for (int i = 1; i < MEMBERS; i++) {
        if (members[i].fd >= 0)
            close(members[i].fd);
        if (others[i] >= 0)
            close(others[i]);
    }
    close(l.listener);
}

START_TEST(members_that_live_wake_nobody)
{
    ck_assert_int_eq(link_callers_wait(&l, st_now_ms() + 20, -1), STRATA_ERR_TIMEOUT);
}
END_TEST

/* A death, then a good-bye, while it sleeps: each ends the sleep, once, and frees what it has published. */
START_TEST(members_that_go)
{
    int number;

    for (int i = 1; i < MEMBERS; i++) {
        members[i].blobs = malloc(100);
        members[i].length = 100;
        members[i].taken = true;
    }
    close(others[2]);
    others[2] = -1;
    ck_assert_int_eq(link_callers_wait(&l, st_now_ms() + AWAIT_LIMIT_S * 1000, -1), STRATA_OK);
    ck_assert_int_eq(strata_channel_accept(&l, 20, &number), STRATA_ERR_TIMEOUT);
    ck_assert_int_eq(members[2].fd, -1);
    ck_assert_int_ge(members[1].fd, 0);
    ck_assert_int_eq(send(others[1], "", 1, 0), 1);
    ck_assert_int_eq(link_callers_wait(&l, st_now_ms() + AWAIT_LIMIT_S * 1000, -1), STRATA_OK);
    ck_assert_int_eq(strata_channel_accept(&l, 20, &number), STRATA_ERR_TIMEOUT);
    ck_assert_int_eq(members[1].fd, -1);
    for (int i = 1; i < MEMBERS; i++)
        ck_assert(!members[i].blobs && members[i].length == 0 && members[i].taken);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_accept");
    TCase *tc = tcase_create("accept");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, members_that_live_wake_nobody);
    tcase_add_test(tc, members_that_go);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
